"""Facts that cannot both hold: the same attribute of the same subject with another value. Pure,
without a model.

Only what is certain by its form is told: a subject that is named, an attribute that has one value,
and a value of the same kind. `lives in Oslo` and `lives in Rome` contradict each other; `likes tea`
and `likes coffee` do not. Everything else is left to the model that tidies memory.
"""

from __future__ import annotations

import re

import msgspec

from .words import normalize_text

MAX_CLAIM_CHARS = 200
"""A longer text says more than one thing."""


class Claim(msgspec.Struct, frozen=True):
    """What a text says of one attribute. `subject` is '' for the person whose fact it is. Values of
    another `kind` say something else: a day, and a time."""

    subject: str
    attribute: str
    kind: str
    value: str


def parse_claim(text: str) -> Claim | None:
    """The claim that a text is, None where that is not certain."""
    if len(text) > MAX_CLAIM_CHARS:
        return None
    text = _TIME_FILLER.sub(" ", text.replace("\u2019", "'"))
    text = " ".join(text.split()).rstrip(".!")
    if _UNSURE.search(text):
        return None
    return _parse_predicate(text) or _parse_copula(text)


def contradict(one: Claim, other: Claim) -> bool:
    """Whether they cannot both hold. A value that only says more of the other does not contradict
    it."""
    if (one.subject, one.attribute, one.kind) != (other.subject, other.attribute, other.kind):
        return False
    if one.kind == "exact":
        return one.value != other.value
    if one.kind != "name":
        return one.value.casefold() != other.value.casefold()
    if one.attribute in _PLACES and not _are_separate_places(one.value, other.value):
        return False
    words = {*normalize_text(one.value).split()}
    others = {*normalize_text(other.value).split()}
    return not (words <= others or others <= words)


def _are_separate_places(one: str, other: str) -> bool:
    """Whether it is certain enough that neither of two places lies in the other. A city may lie in
    a country, and a house in a city."""
    if _has_number(one) != _has_number(other):
        return False
    places = normalize_text(one), normalize_text(other)
    if any(place in _AREAS for place in places):
        return False
    return (places[0] in _COUNTRIES) == (places[1] in _COUNTRIES)


def _has_number(text: str) -> bool:
    return any(letter.isdigit() for letter in text)


# Words with which a text says something else than that this is so, or more than that

_TIME_FILLER = re.compile(
    r"\b(?:now|currently|actually|nowadays|these days|from now on|jetzt|ahora|maintenant)\b,?",
    re.IGNORECASE,
)
_ENGLISH = (
    "not|no|never|cannot|also|too|as "
    "well|another|other|else|first|second|third|one|both|either|and|or|but|if|when"
    "|while|until|unless|since|before|after|maybe|perhaps|probably|might|may "
    "be|could|would|should|will|sometimes|often"
    "|usually|used to|former|(?<!years )old|ex|new|said|says|thinks|believes"
)
_UNSURE_FOREIGN = r"nicht|kein\w*|auch|und|oder|nunca|también|y|o|pas|jamais|aussi|et|ou"
_UNSURE = re.compile(
    rf"[?;]|[.!] \S{{2,}}.* |n't\b|(?<!\S)(?:{_ENGLISH}|{_UNSURE_FOREIGN})(?=[\s,.:]|$)",
    re.IGNORECASE,
)


# What a value is

_NAME = r"[^\W\d_a-zß-öø-ÿ][\w.'-]*"
_NAMES = re.compile(
    rf"(?:{_NAME}[ ,]+(?:(?:of|the|de|la|van|von|der|den|di|du|da|del|el) )*)*{_NAME}"
)
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DATE = re.compile(
    rf"{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?"
    rf"|\d{{1,2}}(?:st|nd|rd|th|\.)? (?:of )?{_MONTH}(?:,? \d{{4}})?"
    r"|\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./](?:\d{2,4})?",
    re.IGNORECASE,
)
_DAY = re.compile(r"(?:mon|tues|wednes|thurs|fri|satur|sun)day", re.IGNORECASE)
_TIME = re.compile(r"\d{1,2}(?::\d\d)?(?: ?[ap]\.?m\.?)?(?: o'clock)?", re.IGNORECASE)
_NUMBER = re.compile(
    r"[+#$€£(]?\d[\d .,:/()+-]*(?:%|cm|m|kg|lbs?|km|euros?|dollars?|eur|usd)?", re.IGNORECASE
)
_ADDRESS = re.compile(r"\d+\w? [\w .,'-]*\w|\w[\w .,'-]* \d+\w?")
_ADJECTIVE = re.compile(
    r"\w+(?:ish|ese|ian|ean|man|can|ch|ss|ic|im|ist|du|ek|ot|ab|ed|ing)", re.IGNORECASE
)
"""German, French, Catholic: it looks like a name, and says what somebody is like. A name that ends
so is left alone."""


def _value_kind(value: str) -> str:
    """What a value is; '' for words."""
    kinds = (("date", _DATE), ("day", _DAY), ("number", _NUMBER), ("name", _NAMES))
    return next((kind for kind, pattern in kinds if pattern.fullmatch(value)), "")


# Verbs whose object there is one of: `Ann lives in Oslo`

_WHO = rf"(?P<who>(?:I|(?:[Tt]he )?(?:[Uu]ser|[Oo]wner)|{_NAME}(?: {_NAME})?) )?"
_VERBS = (
    (r"(?:[Ll]ives?|(?:am|is) (?:living|based)|[Rr]esides?) (?:in|at)", "home", "name"),
    (r"(?:has |have |[Hh]as )?(?:[Mm]oved|relocated) to", "home", "name"),
    (r"[Ww]ohn[te] in|[Ll]eb[te] in|[Vv]iv[eo] en|[Hh]abite à", "home", "name"),
    (r"(?:[Ww]orks?|(?:am|is) (?:working|employed)) (?:at|for|by)", "employer", "name"),
    (r"[Aa]rbeitet? (?:bei|für)|[Tt]rabaj[ao] (?:en|para)|[Tt]ravaille chez", "employer", "name"),
    (r"(?:am|is|[Ii]s) married to", "spouse", "name"),
    (r"(?:was|[Ww]as) born on", "birthday", "date"),
    (r"(?:was|[Ww]as) born in", "birthplace", "name"),
    (r"[Ww]eighs?", "weight", "number"),
)
_PREDICATES = (
    *(
        (re.compile(rf"{_WHO}(?:{verb}) (?P<value>.+)"), attribute, kind)
        for verb, attribute, kind in _VERBS
    ),
    (re.compile(rf"{_WHO}(?:am|is) (?P<value>\d{{1,3}})(?: years old)?"), "age", "number"),
    (re.compile(rf"{_WHO}(?:am|is) (?P<value>\d[\d.,]* ?(?:cm|m|feet|ft)) tall"), "height", "tall"),
)
_PERSON = frozenset(("", "i", "user", "the user", "owner", "the owner"))
_PRONOUN_WORDS = "he she it they we you this that er sie es wir ihr él ella il elle"
_PRONOUNS = frozenset(_PRONOUN_WORDS.split())


def _parse_predicate(text: str) -> Claim | None:
    text = re.sub(r"^I'm ", "I am ", text)
    for pattern, attribute, kind in _PREDICATES:
        found = pattern.fullmatch(text)
        if found is None:
            continue
        value = found["value"]
        who = normalize_text(found["who"] or "")
        address = attribute == "home" and _ADDRESS.fullmatch(value)
        if who in _PRONOUNS or not (kind in ("tall", _value_kind(value)) or address):
            return None
        return Claim("" if who in _PERSON else who, attribute, kind, value)
    return None


# Places

_PLACES = ("home", "birthplace")
_COUNTRY_NAMES = """
afghanistan, albania, algeria, angola, argentina, armenia, australia, austria, azerbaijan, bangladesh, belarus,
belgium, bolivia, botswana, brazil, bulgaria, cambodia, cameroon, canada, chile, china, colombia, croatia, cuba,
cyprus, denmark, ecuador, egypt, estonia, ethiopia, finland, france, germany, ghana, greece, guatemala, honduras,
hungary, iceland, india, indonesia, iran, iraq, ireland, israel, italy, jamaica, japan, jordan, kazakhstan, kenya,
kuwait, latvia, lebanon, libya, lithuania, malaysia, malta, mexico, moldova, mongolia, montenegro, morocco, namibia,
nepal, new zealand, nicaragua, nigeria, north macedonia, norway, pakistan, panama, paraguay, peru, philippines,
poland, portugal, qatar, romania, russia, rwanda, saudi arabia, senegal, serbia, slovakia, slovenia, south africa,
south korea, spain, sri lanka, sudan, sweden, switzerland, syria, taiwan, tanzania, thailand, tunisia, turkey,
uganda, ukraine, uruguay, uzbekistan, venezuela, vietnam, yemen, zambia, zimbabwe
"""
_COUNTRIES = frozenset(map(normalize_text, _COUNTRY_NAMES.split(",")))
"""One name of each; two of them are two places."""
_AREA_NAMES = """
europe, asia, africa, america, north america, south america, latin america, central america, oceania, scandinavia,
the eu, eu, the balkans, the alps, the middle east, the caribbean, us, the us, usa, the usa, united states, the
united states, the states, uk, the uk, united kingdom, the united kingdom, britain, great britain, england,
scotland, wales, northern ireland, holland, netherlands, the netherlands, korea, czechia, czech republic, the czech
republic, luxembourg, singapore, monaco, hong kong, the philippines, georgia, uae, the uae, deutschland, österreich,
schweiz, die schweiz, der schweiz, frankreich, italien, spanien, polen, niederlande, den niederlanden, dänemark,
schweden, norwegen, griechenland, türkei, der türkei, ungarn, russland, belgien, kroatien, alemania, españa,
francia, italia, inglaterra, estados unidos, los estados unidos, méxico, brasil, suiza, allemagne, france, espagne,
italie, angleterre, suisse, belgique, états-unis, alabama, alaska, arizona, arkansas, california, colorado,
connecticut, delaware, florida, hawaii, idaho, illinois, indiana, iowa, kansas, kentucky, louisiana, maine,
maryland, massachusetts, michigan, minnesota, mississippi, missouri, montana, nebraska, nevada, new hampshire, new
jersey, new mexico, new york, north carolina, north dakota, ohio, oklahoma, oregon, pennsylvania, rhode island,
south carolina, south dakota, tennessee, texas, utah, vermont, virginia, washington, west virginia, wisconsin,
wyoming, ontario, quebec, british columbia, alberta, new south wales, queensland, victoria, tasmania, bavaria,
bayern, hesse, hessen, saxony, sachsen, brandenburg, thuringia, thüringen, lower saxony, niedersachsen,
baden-württemberg, north rhine-westphalia, nordrhein-westfalen, rhineland-palatinate, rheinland-pfalz, saarland,
schleswig-holstein, mecklenburg-vorpommern, tyrol, tirol, tuscany, sicily, sardinia, lombardy, catalonia, andalusia,
the basque country, brittany, normandy, provence, alsace, cornwall, yorkshire, kent, essex, sussex, flanders,
wallonia
"""
_AREAS = frozenset(map(normalize_text, _AREA_NAMES.split(",")))
"""Other names of countries, and what is larger or smaller than one: any place may lie in them, or
they in it."""


# What somebody or something has one of: `the dog is Rex`, `Ann's favourite colour is blue`

_NAMING_VERBS = ("is called", "is named", "heißt", "se llama", "s'appelle")
_COPULA = re.compile(
    (
        rf"(?P<subject>.+?) (?P<verb>{'|'.join(_NAMING_VERBS)}|is|ist|es|est) (?P<at>on |at "
        r")?(?P<value>[^ ].*)"
    ),
    re.IGNORECASE,
)
_OWN_SUBJECT = re.compile(
    (
        r"(?:(?:the|my|our|(?:the "
        r")?(?:user|owner)'s|meine?|unsere?|der|die|das|mi|nuestr[oa]|el|la|mon|ma|notre|le) )+"
    ),
    re.IGNORECASE,
)
_VAGUE_SUBJECT = re.compile(
    r"(?:an?|this|that|some|any|his|her|its|their|your|he|she|it|they|who|what|seine?|ihre?|eine?|su|una?|une|son|sa)\b",
    re.IGNORECASE,
)
"""How a subject begins that could be anybody's, or one of several."""
_SINGLE_WORDS = """
dog cat wife husband spouse partner girlfriend boyfriend fiancé fiancée boss manager doctor dentist vet landlord
landlady mother father mum mom dad employer company bank hometown school university gym city country capital lawyer
accountant therapist
hund katze frau mann chef chefin arzt zahnarzt vater mutter
perro gato esposa esposo marido jefe jefa chien chat femme mari patron
"""
_SINGLE_NOUNS = frozenset(_SINGLE_WORDS.split())
"""Of whom, or of what, one usually has one. Brothers, friends and colleagues are not here."""
_ATTRIBUTE_WORDS = """
name nickname password passphrase pin code passcode combination number size address email mail phone birthday
anniversary timezone deadline budget rent salary username login color age weight height ssid plate iban
passwort geburtstag adresse telefonnummer handynummer contraseña dirección teléfono
"""
_ATTRIBUTES = frozenset(_ATTRIBUTE_WORDS.split())
"""What has one value, whatever it looks like."""
_EXACT_WORDS = """
password passphrase passcode pin code combination username login plate ssid
passwort contraseña
"""
_CASE_SENSITIVE = frozenset(_EXACT_WORDS.split())
"""What is another one where a letter is large instead of small."""
_ONCE_WORDS = (
    "appointment flight train deadline interview exam wedding surgery party departure arrival "
    "checkup"
)
_ONE_TIME_EVENTS = frozenset(_ONCE_WORDS.split())
"""What is on one day, and at one time."""
_SPELLINGS = {"favorite": "favourite", "colour": "color", "e-mail": "email"}
_LIST_WORDS = 6


def _parse_copula(text: str) -> Claim | None:
    found = _COPULA.fullmatch(text)
    if found is None or _VAGUE_SUBJECT.match(found["subject"]):
        return None
    subject, of_its_name = _parse_subject(found["subject"])
    words = subject.split()
    verb = found["verb"].lower()
    value = found["value"]
    if not words:
        return None
    last = words[-1]
    kind = _value_kind(value)
    if of_its_name or verb in _NAMING_VERBS:
        return (
            Claim(subject, "name", "name", value)
            if last in _SINGLE_NOUNS and kind == "name"
            else None
        )
    if last in _ONE_TIME_EVENTS and _TIME.fullmatch(value):
        return Claim(subject, "when", "time", value)
    if kind == "date" or (kind == "day" and last in _ONE_TIME_EVENTS):
        return Claim(subject, "when", kind, value)
    if last in _ATTRIBUTES or "favourite" in words[:-1]:
        several = "," in value or len(value.split()) > _LIST_WORDS
        if several or found["at"]:
            return None
        return Claim(subject, "value", "exact" if last in _CASE_SENSITIVE else "value", value)
    if (
        verb == "is"
        and not found["at"]
        and last in _SINGLE_NOUNS
        and kind == "name"
        and not _ADJECTIVE.fullmatch(value)
    ):
        return Claim(subject, "name", "name", value)
    return None


def _parse_subject(text: str) -> tuple[str, bool]:
    """The words of a subject, without whose it is where it is the person's own; and whether its
    name is meant."""
    text = _OWN_SUBJECT.sub("", text, 1) if _OWN_SUBJECT.match(text) else text
    named = re.fullmatch(r"name of (.+)|(.+)'s name", text, re.IGNORECASE)
    if named is not None:
        text = named[1] or named[2]
        text = _OWN_SUBJECT.sub("", text, 1) if _OWN_SUBJECT.match(text) else text
    words = text.casefold().replace("time zone", "timezone").split()
    return " ".join(_SPELLINGS.get(word, word) for word in words), named is not None
