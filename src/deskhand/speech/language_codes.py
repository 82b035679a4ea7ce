"""What engines call a language, as a code of ISO 639-1.

They say it by its English name (Whisper: https://github.com/openai/whisper/blob/main/whisper/tokenizer.py),
by a code of ISO 639-2 or 639-3 (ElevenLabs), or by a tag such as `de-CH` (Deepgram):
https://www.loc.gov/standards/iso639-2/php/code_list.php
"""

from __future__ import annotations

import re

# The code, and everything else by which the language is known.
_LANGUAGES = """
af afr afrikaans
am amh amharic
ar ara arb arabic
as asm assamese
az aze azj azerbaijani
ba bak bashkir
be bel belarusian
bg bul bulgarian
bn ben bengali
bo bod tib tibetan
br bre breton
bs bos bosnian
ca cat catalan valencian
cs ces cze czech
cy cym wel welsh
da dan danish
de deu ger german
el ell gre greek
en eng english
es spa spanish castilian
et est ekk estonian
eu eus baq basque
fa fas per pes persian farsi
fi fin finnish
fo fao faroese
fr fra fre french
ga gle irish
gl glg galician
gu guj gujarati
ha hau hausa
he heb hebrew
hi hin hindi
hr hrv croatian
ht hat haitian
hu hun hungarian
hy hye arm armenian
id ind indonesian
ig ibo igbo
is isl ice icelandic
it ita italian
ja jpn japanese
jv jav javanese
ka kat geo georgian
kk kaz kazakh
km khm khmer
kn kan kannada
ko kor korean
ky kir kyrgyz kirghiz
la lat latin
lb ltz luxembourgish letzeburgesch
ln lin lingala
lo lao
lt lit lithuanian
lv lav lvs latvian
mg mlg malagasy
mi mri mao maori
mk mkd mac macedonian
ml mal malayalam
mn mon khk mongolian
mr mar marathi
ms msa may zsm malay
mt mlt maltese
my mya bur burmese myanmar
ne nep npi nepali
nl nld dut dutch flemish
nn nno nynorsk
no nor nob norwegian
ny nya nyanja chichewa
oc oci occitan
pa pan punjabi panjabi
pl pol polish
ps pus pashto pushto
pt por portuguese
ro ron rum mol romanian moldavian moldovan
ru rus russian
sa san sanskrit
sd snd sindhi
si sin sinhala sinhalese
sk slk slo slovak
sl slv slovenian
sn sna shona
so som somali
sq sqi alb als albanian
sr srp serbian
su sun sundanese
sv swe swedish
sw swa swh swahili
ta tam tamil
te tel telugu
tg tgk tajik
th tha thai
tk tuk turkmen
tl tgl fil tagalog filipino
tr tur turkish
tt tat tatar
uk ukr ukrainian
ur urd urdu
uz uzb uzn uzbek
vi vie vietnamese
wo wol wolof
xh xho xhosa
yi yid yiddish
yo yor yoruba
zh zho chi cmn yue chinese mandarin cantonese
zu zul zulu
"""
_CODES = {name: names[0] for names in map(str.split, _LANGUAGES.split("\n")) for name in names}
_CODES |= {"iw": "he", "in": "id", "jw": "jv", "nb": "no"}  # outdated codes, and one for Bokmål
_SEPARATOR = re.compile(r"[-_ ]")


def find_language(said: str | None) -> str:
    """The code of ISO 639-1 for a language that an engine names; '' where it is not a known one."""
    if not said or len(said) > 40:
        return ""
    first = _SEPARATOR.split(said.strip().lower(), maxsplit=1)[0]
    return _CODES.get(first, "")
