"""What an English value may look like: the check that keeps "back" from being a name and "it" from being liked."""

from __future__ import annotations

import re
from typing import Final

from memory.rules.grammar import any_of

SPECIES: Final = any_of(
    "dog puppy cat kitten rabbit bunny hamster parrot tortoise turtle guinea_pig horse pony goldfish lizard"
)
DIETS: Final = "(?:strict |lifelong )?" + any_of(
    "vegetarian vegan pescatarian pescetarian flexitarian lactose[_-]intolerant gluten[_-]intolerant "
    "gluten[_-]free coeliac celiac keto teetotal(?:er)? halal kosher"
)
CONDITIONS: Final = any_of(
    "asthma (?:type_[12]_)?diabetes epilepsy (?:high_|low_)blood_pressure hypertension arthritis "
    "migraines adhd anxiety depression coeliac_disease celiac_disease a_heart_condition "
    "crohn's_disease"
)
ILL: Final = any_of("(?:type_[12]_)?diabetic asthmatic epileptic colou?r[_-]?blind deaf blind dyslexic autistic")
FOODS: Final = any_of(
    "gluten dairy lactose milk cheese eggs? nuts peanuts shellfish seafood fish meat pork beef soy wheat sugar",
    "alcohol caffeine coffee spicy_food",
)
TERSE: Final = any_of("short brief concise detailed simple casual formal to_the_point")
STYLES: Final = (
    TERSE + r" (?:answers|replies|responses)(?: (?:with|without) (?:emojis?|jargon|bullet points|examples))?"
)

FIELDS: Final = any_of(
    "logistics (?:digital_)?marketing finance (?:tech_)?sales hr human_resources healthcare education retail",
    "hospitality construction insurance publishing advertising tech it real_estate consulting accounting banking",
    "law fintech",
    "manufacturing agriculture customer_(?:service|support) law_enforcement public_relations pr media journalism"
    " film_production software cyber_?security",
)
_PURSUITS: Final = (
    "smoke/smoking drink/drinking run/running jog/jogging swim/swimming play/playing study/studying learn/learning "
    "teach/teaching take/taking wear/wearing drive/driving train/training volunteer/volunteering cycle/cycling "
    "practise/practising practice/practicing lift/lifting climb/climbing box/boxing vape/vaping"
)
HABITS: Final = any_of(*(pair.partition("/")[0] for pair in _PURSUITS.split()))
HABITS_DONE: Final = any_of(*(pair.partition("/")[2] for pair in _PURSUITS.split()))
"""What somebody does until they stop ("I no longer smoke", "I stopped running")."""
_TIMED: Final = re.compile(
    r"\b(?:every|each|on|at|for|today|tonight|tomorrow|this|next|last|it|that|you|with you)\b|\d"
)
_WORKPLACE: Final = re.compile(
    r"\b(?:an?|the) (?:[\w-]+ ){0,2}"
    + any_of(
        "bank hospital school university college company start-?up clinic factory restaurant caf[eé] hotel library",
        "museum shop store firm agency airport supermarket bakery council ngo charity lab laboratory farm bookshop",
        "bookstore gym kindergarten nursery government ministry city",
    )
    + "$"
)
LISTED: Final = frozenset({"like", "dislike", "allergy", "language"})
"""Attributes whose value may be a list; shared with Chinese."""
LATIN_NAME: Final = re.compile(
    r"[a-z\u00c0-\u024f][a-z\u00c0-\u024f'’.-]{1,19}(?: "
    r"[a-z\u00c0-\u024f][a-z\u00c0-\u024f'’.-]{0,19}){0,2}"
)
"""A name in Latin letters, which Chinese speech has too."""

_NO_NAME: Final = re.compile(
    r"\b(?:a|an|the|not|no|on|in|at|my|your|his|her|hard|too|very|so|just|also|here|there|back|"
    r"tomorrow|today|tonight|later|again|crazy|maybe|now|when|if|and|or|but"
    r"|taxi|cab|uber|out|up|over|old|names|stupid|sorry|sure|fine|good|great|ok|okay|busy|tired|new|"
    r"happy|sad|glad|ready|done|lost|late|early|sick|ill|hungry|bored|single|married|divorced|pregnant"
    r"|asap|soon|anytime|anything|whatever|something|nothing|mean|lazy|old-fashioned|weird|curious|"
    r"going|trying|looking|wondering|having|using|getting|is|are|was|pronounced|spelled|spelt|common|"
    r"unusual|long|short"
    r"|german|french|dutch|greek|swiss|thai|czech|turkish|american|mexican|korean|african|european|"
    r"asian|muslim|jewish|hindu|sikh|catholic|christian|buddhist|vegan|vegetarian|male|female|human|"
    r"batman|superman|god|santa|root|admin|administrator|user|null|none|worker|server|system|"
    r"assistant|bot)\b"
    r"|(?:ese|ish|ian|ist|ing|ed)$"
)
_NO_PLACE: Final = re.compile(
    r"^(?:strange|interesting|crazy|hard|dark|better|good|a|an|the|my|your|his|her|our|their|this|that|these|it|fear|peace|hope|denial|hell|sin|"
    r"poverty|pain|constant|bed|here|there|hotel|hotels|town|walking|different|same|one|two|three|"
    r"another)\b(?!hague|netherlands|uk|usa|us\b|philippines|bronx)"
    r"|\b(?:who|which|that|where|when|ago|years?|if|and i|hotel|hostel|hospital|airbnb|dorm|house|"
    r"flat|apartment|next|soon|tomorrow|mars|moon|team|department|office|project|job|role|page|step|"
    r"question|room|building|times|world|era|ages?|silence|luxury"
    r"|chaos|limbo|exile|and|gym|school|for|with|until|at the|right now|"
    r"half|during|linux|windows|android|python)\b"
)
_DIRECTED: Final = re.compile(r"(?:north|south|east|west|central|downtown) [a-z]{3,}$")
_THE_PLACE: Final = re.compile(
    r"the (?:hague|netherlands|uk|usa|us|philippines|bronx|bay area|united states|united kingdom|lake "
    r"district|countryside)$"
)
_VILLAGE: Final = re.compile(
    r"an? (?:[a-z]+ ){0,2}(?:village|town|suburb|island) (?:near|outside|in|off|close to|south of|north of) [^\W\d_]+"
)
_NO_THING: Final = re.compile(
    r"^(?:up|still|by|you|it|this|that|these|those|them|him|her|us|me|how|what|when|where|who|why|which|your|my|"
    r"his|their|our|all|the (?!ocean|sea|outdoors|beach|mountains|countryside|rain|snow|sun\b|cold|"
    r"heat|summer|winter|autumn|spring|night|dark$)|to$|to (?:think|say|know|believe|imagine|ask|"
    r"point|see|be|thank|apologi[sz]e|report|complain)|everything|anything|nothing|something|someone|"
    r"everyone|being|having to|a lot|neither|both|either|all of|none|one|not|so|very|for|of|about|in|"
    r"on|at|with|retry|more|less|another|some|any|going back|it when|him|her)\b"
    r"|\b(?:them|those|this|these|than|better|today|yesterday|tonight|tomorrow|right now|at the "
    r"moment|if|when|because|since|rn|atm|af|that|who|whom|which|where|but|would|could|is|are|was|were|am|i|i'm|"
    r"you|your|yours|here|anymore|any more|until|while|though|now|then|lately|instead|over|ago)\b|"
    r"\bmondays?$"
)
_NO_JOY: Final = re.compile(
    r"^(?:waiting|queu(?:e?ing)|standing in|sitting in traffic|getting (?:yelled|ignored|stuck|ghosted|spammed)"
    r"|paying (?:rent|taxes|bills|for nothing)|traffic|traffic jams|taxes|delays|deadlines|overtime|spam|ads"
    r"|cold calls|unpaid|rude|doing nothing all|cleaning up after|losing|failing|stepping on)\b"
    r"|\b(?:on hold|at \d+ ?(?:am|in the morning)|for no reason)\b"
)
"""What is loved in mockery alone."""
_NO_ALLERGEN: Final = re.compile(
    r"^(?:it|this|that|these|those|them|you|my|your|the|everything|anything|nothing|work|working|"
    r"mondays?|mornings?|exercise|bullshit|bs|stupid|stupidity|drama|people|meetings|commitment|math|"
    r"maths|school|homework|fun|money|being|waking|early|nonsense|idiots?|liars?|lies|him|her|what|whatever|something|some|certain|"
    r"many|a lot|lots)\b"
    r"|^(?!herring)[a-z]+ing\b|\b(?:if|when|but|i|is|are|was|you|who|which|that|mondays|jokes)\b"
)
_NO_FOOD: Final = re.compile(
    r"\b(?:eat|drink)s? (?:it|this|that|them|much|enough|well|out|in|breakfast|lunch|dinner|anything|"
    r"everything|food|up|at|before|after|when|while|alone|here|there|a lot|more|less|as|like|with|"
    r"because|until|so|too|very|your|my|the|and)\b"
    r"|\b(?:if|today|tonight|yesterday|tomorrow|now|right|yet|when|while|but|i|you|without|unless|"
    r"anymore|any more|than|before|after|because|until|since)\b"
)
_JOB: Final = re.compile(
    r"(?!.*\b(?:not|good|bad|big|huge|great|terrible|better|best|worst|bit|fan|lot|little|you|me|who|"
    r"that|is|of my|from|very|real|true|total|pirate|king|queen|kind|sort|ai|your|my|his|her|our|"
    r"their|considering|seeing|going|looking|becoming|dating|visiting|calling|hiring)\b)(?:[a-z-]+ "
    r"){0,3}?"
    + any_of(
        "[a-z]*engineer [a-z]*nurse teacher doctor physician surgeon lawyer solicitor attorney "
        "accountant chef cook driver [a-z]*designer manager salesman saleswoman salesperson translator "
        "interpreter",
        "journalist editor writer author painter artist actor actress police_officer soldier farmer "
        "worker consultant analyst professor lecturer researcher scientist photographer architect "
        "pharmacist",
        "dentist vet veterinarian guide pilot firefighter guard courier barista bartender waiter "
        "waitress cashier clerk secretary assistant librarian programmer developer coder [a-z]*student "
        "undergraduate postdoc",
        "freelancer plumber electrician carpenter mechanic hairdresser barber tailor baker butcher "
        "fisherman sailor captain musician singer dancer composer producer director judge paramedic "
        "midwife therapist",
        "psychologist psychiatrist physiotherapist economist biologist chemist physicist mathematician "
        "statistician historian geologist botanist tutor coach trainer gardener florist realtor banker "
        "broker",
        "auditor recruiter welder roofer bricklayer builder technician technologist "
        "administrator_assistant founder entrepreneur homemaker housewife carer caregiver nanny au_pair "
        "stay-at-home_(?:mom|dad|mum) retiree",
        "estate_agent social_worker product_owner scrum_master data_scientist machinist locksmith "
        "jeweller optician radiographer dietitian nutritionist copywriter illustrator animator beekeeper "
        "archaeologist curator",
    )
)
_OPEN_JOB: Final = re.compile(
    r"(?!.*\b(?:if|i|you|when|that|child|kid|team|whole|result|matter|rule|group|couple|family|it|is|"
    r"are|was)\b)[a-z][a-z' -]{2,38}"
)
_LANGUAGES: Final = any_of(
    "english french german spanish portuguese italian dutch russian chinese mandarin cantonese "
    "japanese korean arabic hebrew hindi urdu bengali punjabi tamil turkish greek polish czech "
    "slovak hungarian",
    "romanian bulgarian serbian croatian ukrainian swedish norwegian danish finnish icelandic irish "
    "welsh catalan basque thai vietnamese indonesian malay tagalog swahili persian farsi latin "
    "esperanto sign_language",
)
_LANGUAGE: Final = re.compile(f"(?:fluent |some |a little |a bit of |basic )?{_LANGUAGES}")
_PAIRS: Final = re.compile(
    any_of(
        "rock_and_roll mac(?:aroni)?_and_cheese fish_and_chips salt_and_pepper arts_and_crafts "
        "dungeons_and_dragons gin_and_tonic drum_and_bass peanut_butter_and_jelly rhythm_and_blues "
        "black_and_white"
    )
)
_LIST: Final = re.compile(r",? (?:and|or|nor) |, ")
_LONGEST_ITEM: Final = 3
_LONGEST_VALUE: Final = 10
_MOST_WORDS: Final = {"allergy": 4, "like": 8, "dislike": 8, "favourite": 5, "home": 5, "origin": 5}


def split(words: str, attribute: str) -> list[tuple[int, int]]:
    """Cut "cats, dogs and birds" into its values; longer phrases stay whole."""
    if attribute not in LISTED:
        return [(0, len(words))]
    protected = _PAIRS.sub(lambda found: "\x01" * len(found[0]), words)
    edges = [0, *(edge for cut in _LIST.finditer(protected) for edge in cut.span()), len(words)]
    items = [(edges[index], edges[index + 1]) for index in range(0, len(edges), 2)]
    if any(not 0 < len(words[left:right].split()) <= _LONGEST_ITEM for left, right in items):
        return [(0, len(words))]
    return [(0, len(words))] if attribute in ("like", "dislike") and _shares_noun(words, items) else items


def _shares_noun(words: str, items: list[tuple[int, int]]) -> bool:
    """Whether the first item may be an adjective of the last one's noun ("sunny and warm weather")."""
    first, last = words[slice(*items[0])], words[slice(*items[-1])]
    return len(items) > 1 and " " not in first and " " in last and not first.endswith(("s", "ing"))


def fits(attribute: str, words: str, written: str, clause: str) -> bool:
    """Whether a folded value, ``written`` like this in its ``clause``, may fill an attribute."""
    if not words or len(words.split()) > _MOST_WORDS.get(attribute, _LONGEST_VALUE):
        return False
    match attribute:
        case "name" | "address" | "pet":
            return is_english_name(words, written, clause)
        case "name__named":
            return written[0].isupper() and is_english_name(words, written, clause)
        case "home__named":
            return written[0].isupper() and _is_english_place(words, written, clause)
        case "home" | "origin":
            return _is_english_place(words, written, clause)
        case "allergy":
            return not _NO_ALLERGEN.search(words)
        case "diet":
            return not _NO_FOOD.search(words)
        case "like":
            return not _NO_THING.search(words) and not _NO_JOY.search(words)
        case "dislike":
            return not _NO_THING.search(words)
        case "favourite":
            return not _NO_THING.search(words)
        case "job":
            return _JOB.fullmatch(words) is not None
        case "fact__left":
            return not _TIMED.search(words)
        case "fact__workplace":
            return written.rsplit(maxsplit=1)[-1][0].isupper() or _WORKPLACE.search(words) is not None
        case "job__stated":
            return _OPEN_JOB.fullmatch(words) is not None
        case "language":
            return _LANGUAGE.fullmatch(words) is not None
        case _:
            return True


def is_english_name(words: str, written: str, clause: str) -> bool:
    """Whether words are a name: capitalised throughout, or a single word in a clause without any capital."""
    if not LATIN_NAME.fullmatch(words) or _NO_NAME.search(words):
        return False
    return all(part[0].isupper() for part in written.split()) or (" " not in words and clause == clause.lower())


def _is_english_place(words: str, written: str, clause: str) -> bool:
    if _THE_PLACE.fullmatch(words) or (_VILLAGE.fullmatch(words) and written.rsplit(maxsplit=1)[-1][0].isupper()):
        return True
    if _NO_PLACE.search(words) or not re.fullmatch(r"[^\W\d_][\w .'’-]{1,39}", words):
        return False
    return (
        written[0].isupper()
        or _DIRECTED.match(words) is not None
        or (words.count(" ") <= 1 and clause == clause.lower())
    )
