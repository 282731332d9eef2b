"""English, as tables. Every predicate is written once; ``~`` verbs agree with the subject."""

from __future__ import annotations

import re
from typing import Final

from memory.model import SELF
from memory.rules import values_english as values
from memory.rules.grammar import Rule, Subject, Tongue, any_of

_KIN: Final = any_of(
    "daughter son child kid baby wife husband hubby spouse partner girlfriend boyfriend gf bf fiancée? fiance",
    "mother father mom mum mam dad mama papa sister brother twin grandmother grandfather grandma grandpa granny nan",
    "aunt uncle",
)
_OTHERS: Final = re.compile(
    rf"(?:(?:my|our) |(?=(?:mom|mum|mam|dad|grandma|grandpa|granny)\b))"
    rf"(?:(?:dear|lovely|little|older|younger|elder|big|oldest|youngest|twin) "
    rf")?(?P<kin>{_KIN}(?:[- ]in[- ]law)?)(?P<name> [^\W\d_]+)?(?=\b|s (?:birthday|b-?day|name)\b)"
)
_OWN: Final = re.compile(
    r"i(?=[' ]|m |ve )|our (?="
    + values.SPECIES
    + r"\b)|my (?=(?:full |first |real |given )?name\b|birthday|b-?day|fav(?:ou?rite|e)?\b|home(?: town)? is|"
    r"hometown|job|occupation|profession|native|mother tongue|time ?zone|hobb|(?:" + values.SPECIES + r")\b)"
)
_NAMED: Final = re.compile(r"(?:'s| is| was| has| turns?| likes| loves| lives| works| hates| speaks)\b")

_ADV: Final = (
    "(?:"
    + any_of(
        "really also still currently now just always absolutely honestly actually quite very so "
        "do(?!_not) personally generally usually mostly severely mildly deathly slightly highly extremely super pretty "
        "insanely terribly totally badly kinda already recently"
    )
    + " )*"
)
_NO_MORE: Final = "(?: any ?more| any longer| now)?"
_SINCE: Final = (
    r"(?: (?:now|currently|atm|rn|these days|as well|too|with [a-z0-9 ]{3,24}|for (?:over |about |almost |like "
    r")?\w+ (?:years?|months?)(?: now)?|since [\w ]{3,16}))?"
)
_WHEN: Final = (
    r"(?: (?:recently|now|today|yesterday|(?:last|this|early this|earlier this) (?:week|month|year|"
    r"spring|summer|autumn|fall|winter)|(?:a|\w+) (?:few )?(?:weeks?|months?|years?) ago|in "
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december)))?"
)
_AND_SO: Final = (
    r"(?: and (?:[a-z]+ing|know|have|had|need|want|got|still|it|it's|don't|can't|am|feel|miss|so far)\b[^\0,:]*)?"
)
"""What goes on behind a place without naming another."""
_MORE: Final = (
    r"(?: (?:very much|a lot|so much|too|as well|the most|most of all|these days|right now|rn|atm|lately|"
    r"nowadays|here))?"
)
_MONTH: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DATE: Final = (
    rf"(?:the )?(?P<birthday>{_MONTH} (?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?|\d{{1,2}}(?:st|"
    rf"nd|rd|th)? (?:of )?{_MONTH}(?:,? \d{{4}})?)"
)
_UNTIL: Final = r"(?: (?:right now|now|this week|this month|these days|(?:until|till|til|through) [^\0,:]{2,20}))?"

_NOT_THAT: Final = r"(?:,? not [^\0,:]{2,16})?"

_AGREE: Final = (
    ("be~", "(?:'m|m|am)", "(?:'s|is)"),
    ("don'?t~", "(?:don'?t|do not)", "(?:doesn'?t|does not)"),
    ("have~", "(?:'ve|ve|have)", "(?:'s|has)"),
)


def _any(name: str, longest: int = 60) -> str:
    """Return a group for a value of any words, as few as the rest of the pattern allows."""
    return rf"(?P<{name}>[^\0:]{{1,{longest}}}?)"


def _rule(
    pattern: str,
    *,
    bare: bool = False,
    opens: bool = False,
    negates: bool = False,
    unless: str | None = None,
    needs: str | None = None,
) -> Rule:
    """Return a rule; ``bare`` lets a clause that goes on leave out "I'm", ``opens`` a message as well."""
    own = others = pattern.replace("n't", "n'?t")
    for word, first, third in _AGREE:
        own, others = own.replace(word, first), others.replace(word, third)
    others = re.sub(r"([a-z]+)~", r"(?:\1s|\1es)", others)
    without = own.replace(f"{_AGREE[0][1]} ", f"(?:{_AGREE[0][1]} )?").replace("~", "")
    return Rule(
        own=re.compile(own.replace("~", "")),
        others=re.compile(others),
        bare=re.compile(without if bare or opens else "(?!)"),
        negates=negates,
        unless=re.compile(unless) if unless else None,
        needs=re.compile(needs, re.MULTILINE) if needs else None,
        opens=opens,
    )


_WHO: Final = (
    _rule(f"(?:'?s )?(?:full |first |real |given )?name(?:'?s| is) {_any('name', 40)}{_NOT_THAT}"),
    _rule(f"be~ (?:called|named) {_any('name', 40)}"),
    _rule(
        f"be~ {_any('name', 24)}",
        needs=r"^\W{0,4}(?:hi+|hello|hey+|good (?:morning|evening|afternoon))\b|nice to meet you|let me introduce "
        r"myself|^\W{0,4}i'?m [^\W\d_]+, (?:\d\d\b|an? )",
    ),
    _rule(f"{_ADV}go~ by {_any('address', 24)}(?: now| these days| at work| online| mostly)?"),
    _rule(f"(?:'?s )?(?:birthday|b-?day)(?:'?s| is)(?: on)? {_DATE}"),
    _rule(f"was born on {_DATE}", opens=True),
    _rule(rf"turn~ [\w-]+ on {_DATE}"),
    _rule(f"(?:speak~|be~ fluent in) (?:fluent |some |a little |basic )?{_any('language', 40)}(?: fluently| at home)?"),
    _rule(f"(?:native language|mother tongue)(?:'s| is) {_any('language', 20)}"),
    _rule(f"time ?zone(?:'s| is) {_any('timezone', 30)}"),
)

_LEFT: Final = r"\b(?:left|moved back|moved away|moved on|since moved)\b|\bhere\b"
_WHERE: Final = (
    _rule(f"(?:no longer live~|don't~ live) in {_any('home')}{_NO_MORE}", negates=True),
    _rule(f"be~ (?:no longer|not) living in {_any('home')}{_NO_MORE}", negates=True),
    _rule(f"(?:have~ )?{_ADV}moved (?:away from|out of) {_any('home')}{_WHEN}", negates=True),
    _rule(f"{_ADV}(?:live~|reside~) in {_any('home')}{_SINCE}{_AND_SO}"),
    _rule(f"(?:been )?(?:based|living) in {_any('home__named')}{_SINCE}{_AND_SO}", opens=True),
    _rule(f"be~ {_ADV}(?:based|living|settled) in {_any('home')}{_SINCE}{_AND_SO}", bare=True),
    _rule(
        f"(?:have~ )?{_ADV}(?:moved|relocated) (?:back |over )?(?:from [^,:]{{2,30}} )?to "
        f"{_any('home')}{_WHEN}{_AND_SO}",
        unless=_LEFT,
    ),
    _rule(
        f"(?:just |recently )?(?:moved|relocated) to {_any('home__named')}{_WHEN}{_AND_SO}", opens=True, unless=_LEFT
    ),
    _rule(f"home(?: town)? is {_any('home')}"),
    _rule(f"be~ {_ADV}(?:originally )?from {_any('origin')}(?: originally)?"),
    _rule(f"(?:come~|hail~) from {_any('origin')}"),
    _rule(f"hometown is {_any('origin')}"),
    _rule(f"(?:was )?born and (?:raised|bred|brought up) in {_any('origin')}", opens=True),
)

_BODY: Final = (
    _rule(f"be~ (?:no longer|not) (?:actually )?allergic to {_any('allergy')}{_NO_MORE}", negates=True),
    _rule(f"be~ {_ADV}allergic to {_any('allergy')}{_MORE}", opens=True),
    _rule(f"have~(?: got)? an? {_ADV}(?:severe |bad |mild |serious )?{_any('allergy', 30)} allergy"),
    _rule(f"have~ an? (?:severe |bad |mild |serious )?allergy to {_any('allergy')}"),
    _rule(f"be~ (?:no longer|not) (?:an? )?(?P<diet>{values.DIETS}){_NO_MORE}", negates=True),
    _rule(f"(?:stopped|quit) being (?:an? )?(?P<diet>{values.DIETS})", negates=True),
    _rule(f"(?:be~|have~ been|been) {_ADV}(?:an? )?(?P<diet>{values.DIETS}){_SINCE}", bare=True),
    _rule(f"(?P<diet>{values.DIETS}) since [\\w ]{{3,16}}", opens=True),
    _rule(rf"(?P<diet>don't~ (?:eat|drink) {values.FOODS}) any ?more"),
    _rule(r"(?P<diet>(?:don't~|never|can't|cannot) (?:eats?|drinks?) [^\0,:]{2,40}?)" + _MORE),
    _rule(
        rf"(?P<diet>(?:can't|cannot) (?:have|eat|drink) (?:any )?{values.FOODS}(?:,? (?:and|or) {values.FOODS})?)"
        + _MORE,
        opens=True,
    ),
    _rule(
        r"(?P<diet>(?:only )?eat~ (?:only )?(?:halal|kosher|vegetarian|vegan|gluten[- ]free)(?: food| "
        r"meat)?(?: only)?)"
    ),
    _rule(
        r"(?:keep~|follow~) (?:an? )?(?P<diet>kosher|halal|vegetarian diet|vegan diet|keto diet|gluten[- "
        r"]free diet|low[- ]\w+ diet)"
    ),
    _rule(f"(?:have~|suffer~ from) (?P<health>{values.CONDITIONS})"),
    _rule(f"be~ {_ADV}(?:an? )?(?P<health>{values.ILL})"),
)

_LOVE: Final = any_of("like~ love~ enjoy~ adore~")
_TASTE: Final = (
    _rule(
        rf"(?:'s )?fav(?:ou?rite|e)? (?P<thing>(?!part|thing|one|bit)[a-z]+(?: [a-z]+)?)(?:'s| is| are) "
        rf"{_any('favourite')}{_NO_MORE}"
    ),
    _rule(f"(?:no longer {_LOVE}|don't~ (?:like|love|enjoy)) {_any('like')} (?:any ?more|any longer)", negates=True),
    _rule(f"no longer {_LOVE} {_any('like')}", negates=True),
    _rule(f"don't~ {_ADV}(?:like|enjoy|care for) {_any('dislike')}{_MORE}(?: at all| that much| much)?"),
    _rule(
        f"{_ADV}(?:hate~|dislike~|loathe~|detest~|despise~|can't stand|cannot stand|can't bear|can not "
        f"stand) {_any('dislike')}{_MORE}",
        opens=True,
    ),
    _rule(f"be~ not {_ADV}(?:a (?:big |huge )?fan of|into) {_any('like')} any ?more", negates=True),
    _rule(
        f"be~ not {_ADV}(?:a (?:big |huge )?fan of|into|keen on|fond of) {_any('dislike')}{_MORE}(?: at all)?",
        opens=True,
    ),
    _rule(f"{_ADV}{_LOVE} {_any('like')}{_MORE}"),
    _rule(
        f"be~ {_ADV}(?:(?:a )?(?:(?:big|huge) )?fan of|into|fond of|keen on|crazy about|obsessed with) "
        f"{_any('like')}{_MORE}"
    ),
    _rule(
        f"(?:(?:(?:really|very|super|so|totally) )+(?:into|fond of)|(?:[a-z]+ly )?obsessed with|(?:big|huge) fan of) "
        f"{_any('like')}{_MORE}",
        opens=True,
    ),
    _rule(f"hobb(?:y is|ies are) {_any('like')}"),
    _rule(f"{_ADV}prefer~ {_any('like', 24)} over [^\0,:]{{2,24}}"),
    _rule(f"{_ADV}prefer~ (?![a-z]+ing\\b){_any('like', 24)} to (?!go\\b)[^\0,:]{{2,24}}"),
)

_AT_WORK: Final = (
    r"(?: (?:at|for|in|with|on (?:the|an?)) [^\0,:]{2,40}?)?(?: now| today| these days| by trade| by profession)?"
)
_WORK: Final = (
    _rule(f"(?:no longer work~|don't~ work) as an? {_any('job', 40)}{_NO_MORE}", negates=True),
    _rule(f"be~ (?:no longer|not) an? {_any('job', 40)}{_NO_MORE}", negates=True),
    _rule(
        f"{_ADV}(?:work~|be~ {_ADV}working|started|started working|started work) as an? "
        f"{_any('job__stated', 40)}{_AT_WORK}",
        opens=True,
    ),
    _rule(f"{_ADV}(?:work~|be~ {_ADV}working) in (?P<job__field>{values.FIELDS}){_AT_WORK}"),
    _rule(
        rf"(?P<fact>be~ {_ADV}(?:out of (?:the )?office|on (?:vacation|holiday|leave|a (?:business )?trip)|travell?ing|"
        rf"out of town|in (?:the )?hospital)(?: (?:in|to|around) [^\0,:]{{2,24}}?)?){_UNTIL}",
        opens=True,
    ),
    _rule(
        r"(?P<fact__workplace>(?:work~|be~ working|teach~ [a-z]+) (?:at|for|in) [^\0,:]{2,30}?)(?: now| these days)?"
    ),
    _rule(r"no longer (?P<fact__workplace>work~ (?:at|for) [^\0,:]{2,30}?)" + _NO_MORE, negates=True),
    _rule(r"don't~ (?P<fact__workplace>work (?:at|for) [^\0,:]{2,30}?) (?:any ?more|any longer)", negates=True),
    _rule(f"no longer (?P<fact__left>{values.HABITS}~(?: [^\0,:]{{2,30}}?)?)", negates=True),
    _rule(f"don't~ (?P<fact__left>{values.HABITS}(?: [^\0,:]{{2,30}}?)?) (?:any ?more|any longer)", negates=True),
    _rule(
        f"(?:have~ )?{_ADV}(?:stopped|quit|gave up|given up) (?P<fact__left>{values.HABITS_DONE}(?: [^\0,:]{{2,30}}?)?)"
        f"{_WHEN}",
        negates=True,
    ),
    _rule(
        rf"(?P<fact>be~ {_ADV}studying (?!for\b|with\b|at\b|in\b)[a-z ]{{3,30}}? (?:at|in) "
        r"(?:uni|university|college|school|grad school))"
    ),
    _rule(f"(?:job|occupation|profession) is (?:being )?(?:an? )?{_any('job', 40)}"),
    _rule(f"be~ {_ADV}an? {_any('job', 40)} from {_any('origin', 30)}"),
    _rule(f"be~ {_ADV}an? {_any('job', 40)}{_AT_WORK}", bare=True),
    _rule(f"(?P<species>{values.SPECIES})(?:(?:'s|s) name is|(?:'s| is) (?:called|named)) {_any('pet', 24)}"),
    _rule(f"(?:own~|have~(?: got)?|got) an? (?:pet )?(?P<species>{values.SPECIES}) (?:called|named) {_any('pet', 24)}"),
    _rule(
        r"(?P<fact>work~ (?:nights|days|weekends|shifts|part[- ]time|full[- ]time|remotely|from home|freelance"
        r"|(?:the )?(?:night|day|early|late|evening|swing)[- ]shifts?))" + _AT_WORK,
    ),
    _rule(rf"prefer~ (?P<style>{values.STYLES})"),
)

_SENTENCES: Final = (
    _rule(f"(?:please )?(?:don't|do not|stop|never) call(?:ing)? me {_any('address', 24)}{_NO_MORE}", negates=True),
    _rule(
        f"(?:(?:please|pls|plz|just|you can|you may|but|feel free to|everyone|everybody|people|my friends|friends|"
        f"they|most people|usually|all) )*calls? me {_any('address', 24)}(?: please| pls| plz| for short| from now "
        f"on| instead(?: of [^\0,:]{{2,16}})?)?",
        unless=r"^\W*(?:oh |ha |yeah |yes |well )*(?:sure|right|great|fine)\b|go ahead",
    ),
    _rule(f"(?:the )?name(?:'?s| is) {_any('name__named', 24)}"),
    _rule(
        f"{_any('address', 24)} (?:is|works|will do) ?(?:just |totally |perfectly )?(?:fine|ok|okay|enough|better)?",
        needs=r"\bcall(?:ing)? me (?!back|later|again|now|today|tonight|tomorrow|late|early|please|any ?more|ever)"
        r"[^\W\d_]+[,;] ",
    ),
    _rule(f"my (?:flat|apartment|house|place) is in {_any('home__named')}"),
    _rule("we (?:keep|eat) (?P<diet>kosher|halal|vegetarian|vegan)(?: at home)?"),
    _rule(f"{_any('like', 40)} (?:is|are) my (?:guilty pleasure|comfort food|passion)"),
    _rule(f"{_DATE} is my birthday"),
    _rule(f"it'?s my birthday (?:on )?{_DATE}"),
    _rule(f"we(?: (?:now|currently|both|all))? live in {_any('home')}{_SINCE}"),
    _rule(f"we(?:'?re| are) (?:now |currently )?living in {_any('home')}{_SINCE}"),
    _rule(
        f"we(?:'?ve)? (?:just |recently )?moved (?:from [^,:]{{2,30}} )?to {_any('home__named')}{_WHEN}{_AND_SO}",
        unless=_LEFT,
    ),
    _rule(f"we (?:all )?speak {_any('language', 40)}(?: at home)?"),
    _rule(rf"{_any('favourite', 40)} is my (?:all[- ]time )?favou?rite (?P<thing>[a-z]+)"),
    _rule(
        rf"(?:please )?(?:keep|make) (?:your |the )?(?P<style>(?:answers|replies|responses) "
        rf"{values.TERSE})(?: please)?"
    ),
    _rule(rf"(?:please )?(?:give me |only |just )*(?P<style>{values.STYLES})(?: only)?(?: please)?"),
    _rule(
        r"(?:please )?(?:don't use |use )?(?P<style>(?:no |without )?emojis?)(?: please)?",
        needs=r"(?:no|don't use|without) emojis?",
    ),
)


def _subject(words: str, written: str) -> Subject | None:
    if kin := _OTHERS.match(words):
        name = kin.span("name")
        if name[0] >= 0 and written[name[0] + 1].isupper() and _NAMED.match(words, name[1]):
            return Subject(kin["kin"], _past_space(words, name[1]), (name[0] + 1, name[1]))
        return Subject(kin["kin"], _past_space(words, kin.end("kin")))
    if own := _OWN.match(words):
        return Subject(SELF, _past_space(words, own.end()))
    return None


def _past_space(words: str, place: int) -> int:
    return place + (words[place : place + 1] == " ")


_STARTS: Final = any_of(
    "i_ i' im_ my_ we_speak live_ work_ love_ like_ hate_ enjoy_ am_ don't_ can't_ speak_ have_ "
    "moved_ prefer_ call_ lives_ works_ loves_ likes_ hates_ is_ speaks_ you_can_ never_"
)
_PARTED: Final = r"i (?:have |just |finally |recently )*(?:broke up|split up|separated|(?:got )?divorced)(?! with)"
"""What somebody and I do together, so that the two are no sentences of their own."""
_FILLER: Final = any_of(
    r"[\s\W_] (?:well|ok|okay|so|and|but|btw|fyi|actually|honestly|also|plus|oh|yes|yeah|anyway|"
    r"because|since|as|though|although|hii*|hello|heyy*|yo|there|everyone|now|currently|ugh+|omg|wow|um+|uh+|hmm+|tbh|"
    r"ngl|imo|fwiw|sorry|oops|wait|no(?=,|_wait|_i\b)|nope|haha+|damn|yep|pls|turns_out)\b",
    r"(?:by_the_way|just_so_you_know|heads_up|so_you_know|to_be_clear|just_to_be_clear|for_the_record|"
    r"in_case_you_need_it|please_note_that|note_that|note|first_of_all|to_be_honest|not_gonna_lie)\b",
    rf"i_(?:meant|mean|meant_to_(?:say|write|type))\b(?:_that)?(?=_(?:i\b|my_(?!{_KIN}\b)))",
    r"(?:please_)?(?:remember|keep_in_mind)(?:_that)?\b for_your_information\b i_should_mention_(?:that_)?",
)
_FRAME: Final = any_of(
    r"(?:^|[\n.!?,:;])[^\w\n]{0,4}(?:please_|can_you_|could_you_|help_me_(?:to_)?)*(?:translate|proofread|"
    r"correct|fix|rewrite|rephrase|paraphrase|edit|polish|write|draft|compose|summari[sz]e|explain|"
    r"repeat|say|pretend|imagine|continue|complete)\b",
    r"\bin_(?:my|the|this|a)_(?:new_)?(?:novel|story|book|game|dream|play|script|fanfic|campaign|film|"
    r"movie|song|show)\b",
    r"\b(?:the|my|this)_(?:main_)?(?:character|hero|protagonist|narrator)\b role-?_?play \bgrammar\b "
    r"\blyrics\b \be\.g\. \bfor_(?:example|instance)\b \btranslat(?:e|ion)\b \bin_character\b",
    r"\bact_as\b \bprompt\b \bsaid_no_?-?one (?:^|[.!?]\s)\s*not[.!]*$",
)
_QUESTION: Final = any_of(
    r"^\s*(?:do|does|did|is|are|am|can(?!'t)|could|would|will|should|shall|what|whats|what's|where|who|whom|"
    r"when|how|why|which|have_you|has|isn't|aren't|don't_you|didn't|doesn't_my|guess)\b",
    r"\b(?:right|or_not|remember)\W*\?",
)

ENGLISH: Final = Tongue(
    code="en",
    frame=re.compile(_FRAME),
    breaks=re.compile(
        r",(?!\d{3}|(?: [a-z]+){1,2}(?:, [a-z]+(?: [a-z]+)?){0,8},? (?:and|or) (?!i\b|i'|my\b)[a-z]+(?: "
        r"[a-z]+)?\s*[.!]*$|,? (?:and|or) (?!i\b|i'|my\b)[a-z]+(?: [a-z]+)?\s*[.!]*$)(?! \d{4})"
        rf"|(?<!\d):|:(?!\d)|[()]| - | – |—| (?:and|but) (?!{_PARTED})(?={_STARTS})| (?:and )?(?:but|because|since(?= "
        rf"i)|so|though|although) "
    ),
    filler=re.compile(_FILLER + "*"),
    tail=re.compile(
        r"(?:[\s\W]|\b(?:lol|haha|though|btw|by the way|ok|okay|thanks|thank you|please|tbh|ngl|imo|fwiw|"
        r"honestly|wish me luck|unfortunately|sadly|sorry|just so you know|fyi|yay|ugh|pls|plz|to be honest)\b)*$"
    ),
    harmless=re.compile(any_of(r"just_to_say wish_me_luck to_say_the_least \bsay_hi\b")),
    unreal=re.compile(
        any_of(
            r"\bif\b \bunless\b \bsuppose \bimagine\b \bwhether\b \bwere_to\b \bhypothetically\b "
            r"\bas_though\b \bpretend"
        )
    ),
    joke=re.compile(
        any_of(
            r"\bjk\b \bjust_kidding\b \bkidding\b [😂🤣😜😝🤪] (?<!\S)(?:;-?\)|[:;]-?p\b|xd+\b) "
            r"\blol\b \blmao\b \brofl\b (?<=\w)\s*/s\b "
            r"\bhaha\w*\W*$ \bnot!"
        )
    ),
    wish=re.compile(
        any_of(
            r"\bwish \bhope \bwould\b \bcould\b \bmight\b \bmaybe\b \bperhaps\b \bprobably\b \balmost\b "
            r"\bsoon\b \bwant_to\b \bthinking_(?:of|about)\b \bseem"
        )
    ),
    intent=re.compile(r"\bplan(?:s|ning)? to\b|\bgoing to\b"),
    reported=re.compile(
        any_of(
            r"\b(?:say|says|said|saying|told|tells|think|thinks|thought|claims?|claimed|heard|hear|asked|asks|"
            r"wrote|reads|believes?|assumed?|guess|suspect|according)\b",
            r"\b(?:he|she|they)_(?:goes|go|went)\W*$ \bquote (?:\bbe|\bwas|\bwere|\bis|"
            r"\bam|\bare|\'s|\'m)_like\s*$",
        )
    ),
    question=re.compile(_QUESTION),
    past=re.compile(
        any_of(
            r"\bused_to\b \bwhen_i_was\b \bback_in\b \bback_when\b \bformerly\b \bpreviously\b \bas_a_(?:kid|"
            r"child|teenager|student)\b \bonce\b \bin_my_(?:youth|childhood|teens|twenties)\b \bgrowing_up\b "
            r"\byears_back\b"
        )
    ),
    present=re.compile(any_of(r"\bnow\b \bcurrently\b \bthese_days\b \bnowadays\b \btoday\b")),
    adverbs=re.compile(_ADV),
    others=re.compile(rf"\b(?:he|she|they|him|them|his|their|hers?|everyone|people|friends?|{_KIN})\b"),
    introduces=re.compile(r"(?:(?:'m|am|m) )?\d+(?: years old| yo)?\b"),
    subject=_subject,
    predicates=_WHO + _WHERE + _BODY + _TASTE + _WORK,
    sentences=_SENTENCES,
    splits=values.split,
    fits=values.fits,
)
