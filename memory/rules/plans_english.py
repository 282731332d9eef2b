"""English plans, habits and past events, as tables. A verb is written base/-ing; the -s of others is made from it."""

from __future__ import annotations

import re
from typing import Final

from memory.model import SELF
from memory.rules.grammar import Subject, any_of
from memory.rules.happening import Calendar, Doing, Time

_KIN: Final = any_of(
    "daughter son child kid baby wife husband spouse partner girlfriend boyfriend fiancée? fiance",
    "parents kids children grandparents in-laws daughters sons brothers sisters mother father mom mum dad",
    "mama papa hubby gf bf sister brother twin grandmother grandfather grandma grandpa aunt uncle cousin",
)
_OTHERS: Final = re.compile(
    rf"(?:(?:my|our) |the (?=kids\b|baby\b)|(?=(?:mom|mum|mam|dad|grandma|grandpa|granny|kids)\b))"
    rf"(?:(?:dear|lovely|little|older|younger|elder|big|oldest|youngest|twin) )?(?P<kin>{_KIN}(?:[- ]in[- ]law)?)"
    r"(?: (?!is\b|has\b|and\b|had\b|got\b|will\b)(?P<name>[^\W\d_]+))?(?=[ '])"
)
_TOGETHER: Final = re.compile(rf"my {_KIN} and i\b")
_OWN: Final = re.compile(rf"(?:my {_KIN} and i|me and my {_KIN}|i|we)(?=[ '])")

# --- what may stand behind a verb -------------------------------------------------------------------------------

_FREE: Final = r"[^\0,:]{1,80}?"
_WITH: Final = rf"(?: (?:at|with|for|in|on|about|to|of|by) {_FREE})?"
_WHERE: Final = (
    rf"(?: (?:back|home|out|off|over|up|down|away|in|into|to|for|from|with|via|on|at|by) {_FREE}"
    rf"| (?:back|home|away|off|out|over|house|in|here))?"
)
_ENGAGEMENT: Final = any_of(
    "appointments? exams? tests? interview meeting dentist check-?up surgery operation flight train class",
    "lesson lecture",
    "seminar workshop wedding concert match game race marathon rehearsal recital presentation conference trip session",
    "scan mri x-?ray biopsy hearing trial viewing inspection competition tournament performance graduation ceremony",
    "funeral reunion practice training tickets? deadline audition review webinar tasting vaccination dinner",
    "lunch brunch",
    "party barbecue picnic shift day_off days_off visitors guests baby physio therapy ultrasound call",
)
_AN_ENGAGEMENT: Final = rf" (?:[\w'-]+ ){{0,5}}?{_ENGAGEMENT}{_WITH}"
_THEIR_OWN: Final = rf" (?:my|our|a|an|the|grandma|grandpa|mom|mum|dad) ?{_FREE}"
_STARTED: Final = rf" (?:my|our|a|the|at|school|work|college|university|chemo\w*|physio\w*)(?: {_FREE})?"
_CHANGED: Final = rf" (?:married|divorced|engaged|vaccinated|discharged){_WITH}"

_PLANNED: Final = (
    ("fly/flying leave/leaving depart/departing travel/travelling arrive/arriving land/landing move/moving", _WHERE),
    ("drive/driving deploy/deploying interview/interviewing speak/speaking", _WHERE),
    ("return/returning come/coming head/heading sail/sailing graduate/graduating retire/retiring", _WHERE),
    ("go/going", rf" (?:(?:to|on|back|over|up|down|into|with) {_FREE}|home|away|[a-z]{{2,}}ing(?: {_FREE})?)"),
    ("visit/visiting attend/attending see/seeing meet/meeting host/hosting celebrate/celebrating", f" {_FREE}"),
    ("have/having", _AN_ENGAGEMENT),
    ("get/getting", f"(?:{_CHANGED}|{_THEIR_OWN})"),
    ("start/starting begin/beginning finish/finishing", f"(?:{_STARTED})?"),
    ("take/taking give/giving run/running present/presenting perform/performing", _THEIR_OWN),
    ("defend/defending sign/signing", _THEIR_OWN),
    ("submit/submitting pay/paying renew/renewing return/returning collect/collecting pick/picking", _THEIR_OWN),
    ("hand/handing pick/picking drop/dropping", rf" (?:in|up|off){_THEIR_OWN}"),
    ("leave/leaving", rf" (?:the|my|our) {_FREE}"),
    ("expect/expecting close/closing", rf" (?:on )?(?:my|our|a|the) {_FREE}"),
    ("play/playing", rf" (?:a|an|my|our|the|at|in|against) {_FREE}"),
)  # fmt: skip
"""Verbs of what stands in a calendar, with what may follow them."""
_HABITS: Final = (
    "train run swim work play study practi[sc]e teach attend take have meet visit call cook clean walk jog cycle "
    "bike lift volunteer do eat drink get_up get_coffee get_groceries start_work start_school finish_work watch "
    "see sing dance paint write read meditate pray babysit drive fast garden hike climb box row host give coach "
    "tutor water feed pay buy shop bake ride skate ski surf stretch journal travel commute fly pick_up drop_off "
    "wake_up sleep bring record stream learn wash donate inject get_paid "
)
"""Verbs of what people do again and again; "_" stands for a space."""
_BODY: Final = any_of(
    "wrist arm leg ankle foot toe finger thumb hand nose hip ribs? collarbone shoulder knee elbow tooth jaw back acl"
)
_ADJECTIVES: Final = r"(?:(?:my|our|an?|the|his|her) )?(?:[\w'-]+ ){0,3}?"
_HAPPENED: Final = (
    rf"(?:had|underwent) {_ADJECTIVES}(?:operation|surgery|baby|daughter|son|miscarriage){_WITH}",
    rf"(?:'ve |have |has )?(?:got|gotten) (?:married|divorced|engaged|fired|promoted|laid off|hired|vaccinated){_WITH}",
    rf"(?:graduated|retired|divorced|got my [\w' -]{{2,40}}(?:licen[sc]e|degree|diploma|results)){_WITH}",
    rf"(?:broke|sprained|tore|fractured|dislocated) (?:my|his|her) (?:left |right )?{_BODY}(?: {_FREE})?",
    rf"moved (?:into|in with|house|here|back){_WITH}(?: {_FREE})?",
    rf"(?:passed|failed) {_ADJECTIVES}(?:exams?|tests?|finals|interviews?|audition|course|licen[sc]e){_WITH}",
    rf"(?:quit|started|left|lost) {_ADJECTIVES}(?:job|studies|apprenticeship|degree|course){_WITH}",
    rf"(?:bought|sold|adopted) {_ADJECTIVES}(?:house|flat|apartment|car|dog|cat|puppy|kitten){_WITH}",
    rf"(?:ran|finished) {_ADJECTIVES}(?:marathon|phd|degree|studies|training|thesis){_WITH}",
    r"(?:died|passed away)",
    rf"(?:flew|travelled|traveled) to {_FREE}",
)  # fmt: skip
"""What changes a life or is told for years; a coffee of yesterday is no memory."""

_DATED: Final = any_of(
    "appointment exams? interview meeting deadline wedding flight train surgery operation reunion funeral hearing move",
    "moving_day",
    "defen[cs]e check-?up test concert trip vacation holiday graduation recital competition tournament lease",
    "visa contract",
    "rent report thesis paper essay assignment project invoice tax_return audition marathon class lesson",
    "practice shift",
    "rehearsal training course play therapy viewing mri scan lecture seminar presentation dentist birthday_party",
)
_THE: Final = rf"(?:(?:my|our)(?! {_KIN}\b)(?: (?!\w+'s )[\w'-]+){{0,3}}? {_DATED}|the (?:[\w'-]+ )?{_DATED})"
_BARE: Final = (
    r"(?:an? |my )?(?:(?:doctor|dental|medical|eye|vet|job|final|driving|blood|team|staff)(?:'?s)? )?"
) + any_of(
    "dentist doctor dentist'?s_appointment dentist_appointment appointment interview exam flight surgery",
    "meeting check-?up stand-?up",
    "dinner lunch brunch haircut test",
    "parent-teacher_conference mri physio vaccination rehearsal driving_test",
)  # fmt: skip

_BE: Final = r"(?:'m|m|am|'re|are|'ll be|will be)"
_IS: Final = r"(?:'s|is|will be|'ll be)"
_IRREGULAR: Final = {"have": "has"}
_DO: Final = r"(?:'ll|will|have to|'ve got to|need to|must)"
_DOES: Final = r"(?:'ll|will|has to|needs to|must)"
_SOON: Final = r"(?:going|planning|about) to"
_AWAY: Final = (
    r"(?:(?:in|at) (?!home|work|bed|pain|love|trouble|debt|shock|tears|risk)[a-z]+|away|off|out of town|abroad"
    r"|on (?:vacation|holiday|leave|call|duty|a (?:business )?trip))"
    rf"(?: {_FREE})?"
)
_OBLIGED: Final = r"(?:'ve got to|have to|got to|gotta|need to|must|'ll have to|(?:'m|am|'re|are) supposed to)"
_OBLIGES: Final = r"(?:has got to|has to|gotta|needs to|must|will have to|(?:'s|is) supposed to)"
_DUE: Final = rf"(?:(?:my|our|the|an?) )?(?:(?!\w+'s )[\w'-]+ ){{0,3}}?{_DATED}(?:'s| is| are)? due"
_NOT: Final = r"(?P<no>not |no longer )"
_MORE: Final = r"(?P<rest> any ?more| any longer| after all)"


def _third(verb: str) -> str:
    """Return the form of a verb (and its particle) beside "she"."""
    verb, _, particle = verb.partition("_")
    if verb.endswith(("sh", "ch", "x", "ss", "o")):
        form = f"{verb}es"
    else:
        form = f"{verb[:-1]}ies" if re.search("[^aeou]y$", verb) else f"{verb}s"
    return f"{_IRREGULAR.get(verb, form)}{particle and f' {particle}'}"


def _phrases(form: int, *, third: bool = False) -> str:
    """Return a pattern for every planned verb in its base (0) or -ing (1) form with what may follow."""
    found = []
    for verbs, tail in _PLANNED:
        words = [verb.split("/")[form] for verb in verbs.split()]
        found.append(f"(?:{'|'.join(_third(word) if third else word for word in words)}){tail}")
    return f"(?:{'|'.join(found)})"


def _doing(own: str, others: str, time: Time, *, ends: bool = False) -> Doing:
    return Doing(re.compile(own), re.compile(others), time, ends)


_BASE, _ING, _SHE = _phrases(0), _phrases(1), _phrases(0, third=True)
_GO: Final = rf" (?:(?:to|for|on|out|back|home) ?(?:{_FREE})?|[a-z]{{2,}}ing(?: {_FREE})?)"
_TRAIN: Final = f"(?:{any_of(_HABITS)}(?: {_FREE})?|go{_GO}|leave{_WHERE})"
_TRAINS: Final = f"(?:{any_of(*map(_third, _HABITS.split()))}(?: {_FREE})?|goes{_GO}|leaves{_WHERE})"
_ON_DUTY: Final = rf"(?:off|on call|on duty|at {_FREE})"

_SET: Final = (
    r"(?:is|'s|are|starts?|begins?|ends?|takes? place|(?:is|was|has been|got|'s been) "
    r"(?:moved|rescheduled|postponed|scheduled|set|booked|fixed|pushed back|brought forward)(?: to| for)?)"
)
_OFF: Final = r"(?:is|was|has been|got|'s been|'s) (?:cancell?ed|called off|off)"


_DOINGS: Final = (
    _doing(
        f"(?:{_BE} {_ING}|(?:(?:{_DO}|{_BE} {_SOON}|plan to) )?{_BASE}|(?:'ve|have) got{_AN_ENGAGEMENT})",
        f"(?:{_IS} {_ING}|(?:{_DOES}|{_IS} {_SOON}|plans to) {_BASE}|{_SHE}|(?:'s|has) got{_AN_ENGAGEMENT})",
        "ahead",
    ),
    _doing(
        rf"(?:{_DO} be (?:{_ING}|{_AWAY})|{_BE} {_AWAY})", rf"(?:{_DOES} be (?:{_ING}|{_AWAY})|{_IS} {_AWAY})", "ahead"
    ),
    _doing(
        rf"(?:(?:have to |need to )?{_TRAIN}|(?:'ve|have) got {_FREE}|(?:'m|am|'re|are) {_ON_DUTY})",
        rf"(?:(?:has to |needs to )?{_TRAINS}|(?:'s|has) got {_FREE}|(?:'s|is) {_ON_DUTY})",
        "habit",
    ),
    _doing(f"{_OBLIGED} [a-z]+(?: {_FREE})?", f"{_OBLIGES} [a-z]+(?: {_FREE})?", "due"),
    _doing(r"(?!)", rf"'s (?:[\w'-]+ ){{0,2}}{_DATED}{_WITH}(?P<rest> {_SET})", "ahead"),
    _doing("|".join(_HAPPENED), "|".join(_HAPPENED), "past"),
    _doing(f"(?:'m|am|'re|are) {_NOT}{_ING}{_MORE}?", f"(?:'s|is) {_NOT}{_ING}{_MORE}?", "ahead", ends=True),
    _doing(
        f"(?P<no>don't |do not ){_TRAIN}{_MORE}",
        f"(?P<no>doesn't |does not ){_TRAIN}{_MORE}",
        "habit",
        ends=True,
    ),
    _doing(f"(?P<no>no longer ){_TRAIN}", f"(?P<no>no longer ){_TRAINS}", "habit", ends=True),
)


def _alone(pattern: str, time: Time, *, ends: bool = False) -> Doing:
    return _doing(pattern, pattern, time, ends=ends)


_GUESS: Final = r"(?:going to (?:be|rain|snow|need|suck|have|get)|meeting(?! my\b| with\b| up\b)|visiting hours)\b"
_FINITE: Final = r"\b(?:is|are|was|were|be|will|would|sounds?|seems?|works?|makes?|gets?|hurts?)\b"

_ALONE: Final = (
    _alone(rf"(?!the |an? )(?:[\w-]+ )?{_DATED}", "habit"),
    _alone(f"(?P<told>{_THE}{_WITH}) {_SET}", "ahead"),
    _alone(f"(?:{_THE}) (?:is|are) due", "ahead"),
    _alone(_DUE, "ahead"),
    _alone(_DUE, "due"),
    _alone(f"(?:gotta|got to|need to|have to|must) [a-z]+(?: {_FREE})?", "due"),
    _alone(f"(?:gotta|got to|need to|have to) {_BASE}", "ahead"),
    _alone(rf"(?:got|have|having) (?:an?|my|our|the)(?: [\w'-]+){{0,3}}? {_ENGAGEMENT}{_WITH}", "ahead"),
    _alone(rf"(?!{_GUESS}|.*{_FINITE}){_ING}", "ahead"),
    _alone(
        rf"the (?:plumber|electrician|movers|cleaner|painters?|technician|landlord|builders) (?:is|are) coming{_WHERE}",
        "ahead",
    ),
    _alone(f"(?:{_THE}) (?:leaves|departs|arrives|lands|takes off)", "ahead"),
    _alone(r"(?:gym|yoga|pilates|choir|swimming|church|football|soccer|physio|band)", "habit"),
    _alone(f"(?P<told>{_THE}{_WITH}) {_OFF}", "ahead", ends=True),
    _alone(f"{_BARE}{_WITH}", "ahead"),
    _alone(rf"(?:flying|leaving|moving|travell?ing|heading){_WHERE}", "ahead"),
    _alone(
        rf"(?:(?:my|our) (?:[\w'-]+ ){{0,3}}|(?!the |an? )(?:[\w-]+ )?){_DATED}{_WITH} "
        r"(?:is|are|takes? place|meets?|goes out|(?:is|are) due)",
        "habit",
    ),
    _alone(
        r"(?:my|our) (?:[\w'-]+ ){0,2}(?:club|group|choir|band|team|class) (?:meets|plays|trains|rehearses)",
        "habit",
    ),
    _alone(r"(?:my|our) (?:[\w'-]+ )?anniversary is", "habit"),
)
_UNSURE: Final = any_of(
    r"\b(?:if|when|while|because|who|which|what|where|how|whether|why|or|until|till|before|by|since|except)\b",
    r"\b(?:unless|than|like|as|maybe|might|sometimes|sure|nothing|never)\b",
    r"\b(?:you|your|yours|he|she|they|him|their|it|this|those)\b ^i_are\b \bon_tv\b",
    r"\bto_(?:hate|love|like|think|feel)\b \b(?:patience|dreams?|nightmares?|problems?|trouble|doubts|fun|fights?)\b",
    r"\b(?:sick|tired|happy|sad|angry|bored|worse|better|headache|feeling|dead|kill|stars|too|nuts|questions?)\b",
    r"\b(?:late|bed|cry|crazy|mad|insane|sorry)\b \b(?:to|the)_(?:shop|store|supermarket|toilet|bathroom|kitchen)\b",
)
"""Who is meant, whether it will be, and what nobody keeps in a calendar; any of these spoils a clause."""


def _subject(words: str, written: str) -> Subject | None:
    kin = None if _TOGETHER.match(words) else _OTHERS.match(words)
    if kin:
        name = kin.start("name")
        end = kin.end() if name < 0 or written[name].isupper() else kin.end("kin")
        return Subject(kin["kin"], _past_space(words, end))
    own = _OWN.match(words)
    return Subject(SELF, _past_space(words, own.end())) if own else None


def _past_space(words: str, place: int) -> int:
    return place + (words[place : place + 1] == " ")


CALENDAR: Final = Calendar(
    subject=_subject,
    adverbs=re.compile(
        r"(?:(?:usually|always|normally|generally|typically|also|now|finally|just|actually|regularly) )*"
    ),
    doings=_DOINGS,
    alone=_ALONE,
    unsure=re.compile(_UNSURE),
    usually=re.compile(r"\b(?:usually|always|normally|generally|typically|often|mostly|rarely|regularly|every|each)\b"),
    leads=re.compile(r"(?:(?<![^\s,])(?:on|at|in|from|for|of|this|the|starting)[ ]+)+$"),
    due=(
        re.compile(r"(?:(?<![^\s,])(?:by|before|no later than|not later than|until) (?:the |this |end of )*)$"),
        re.compile("(?!)"),
    ),
    links=re.compile(r"(?:[\s,]|\b(?:so|and|then)\b)*"),
)
