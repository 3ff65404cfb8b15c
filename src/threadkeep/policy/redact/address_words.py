"""Words that streets, flats and countries are known by. Folded: no diacritics."""

from __future__ import annotations

from typing import Final

# The post office's list of American street suffixes and their usual short forms, and the British ones.
STREET_SUFFIX: Final = (
    "Alley|Aly|Annex|Arcade|Avenue|Ave|Bayou|Beach|Bend|Bluff|Bluffs|Bottom|Boulevard|Blvd|Branch|Bridge|Brook|Brooks"
    "|Burg|Burgs|Bypass|Camp|Canyon|Cape|Causeway|Center|Centers|Centre|Circle|Cir|Circles|Cliff|Cliffs|Close|Club"
    "|Common|Commons|Corner|Corners|Course|Court|Ct|Courts|Cove|Coves|Creek|Crescent|Cres|Crest|Crossing|Crossroad"
    "|Crossroads|Curve|Dale|Dam|Divide|Drive|Dr|Drives|Estate|Estates|Expressway|Expy|Extension|Extensions|Fall|Falls"
    "|Ferry|Field|Fields|Flat|Flats|Ford|Fords|Forest|Forge|Forges|Fork|Forks|Fort|Freeway|Garden|Gardens|Gate"
    "|Gateway|Glen|Glens|Green|Greens|Grove|Groves|Harbor|Harbors|Haven|Heights|Hts|Highway|Hwy|Hill|Hills|Hollow"
    "|Inlet|Island|Islands|Isle|Junction|Junctions|Key|Keys|Knoll|Knolls|Lake|Lakes|Land|Landing|Lane|Ln|Light|Lights"
    "|Loaf|Lock|Locks|Lodge|Loop|Mall|Manor|Manors|Meadow|Meadows|Mews|Mill|Mills|Mission|Motorway|Mount|Mountain"
    "|Mountains|Neck|Orchard|Oval|Overpass|Parade|Park|Parks|Parkway|Pkwy|Parkways|Pass|Passage|Path|Pike|Pine|Pines"
    "|Place|Pl|Plain|Plains|Plaza|Point|Points|Port|Ports|Prairie|Quay|Radial|Ramp|Ranch|Rapid|Rapids|Rest|Ridge"
    "|Ridges|River|Road|Rd|Roads|Route|Row|Rue|Run|Shoal|Shoals|Shore|Shores|Skyway|Spring|Springs|Spur|Spurs|Square"
    "|Sq|Squares|Station|Stravenue|Stream|Street|St|Str|Streets|Summit|Terrace|Ter|Throughway|Trace|Track|Trafficway"
    "|Trail|Trailer|Tunnel|Turnpike|Underpass|Union|Unions|Valley|Valleys|Via|Viaduct|View|Views|Village|Villages"
    "|Ville|Vista|Walk|Walks|Wall|Way|Ways|Well|Wells|Wharf|Wood|Woods|Wynd"
)
# Those of them that are streets before they are anything else.
STREETS: Final = (
    "Alley|Avenue|Ave|Boulevard|Blvd|Circle|Cir|Close|Court|Ct|Crescent|Cres|Drive|Dr|Highway|Hwy|Lane|Ln|Mews|Parkway"
    "|Pkwy|Place|Pl|Plaza|Road|Rd|Row|Square|Sq|Street|St|Str|Terrace|Ter|Turnpike|Way"
)
# First words of street names where the number comes last, or first in French.
STREET_PREFIX: Final = (
    r"[Rr]ue|[Aa]venue|[Aa]v\.?|[Aa]venida|[Aa]vda\.?|[Bb]oulevard|[Bb]d\.?|[Cc]hemin|[Ii]mpasse|[Qq]uai|[Ll]argo"
    r"|[Vv]ia|[Vv]iale|[Vv]icolo|[Pp]iazza|[Ss]trada|[Cc]orso|[Cc]alle|C/|[Pp]aseo|[Pp]laza|[Rr]ua|[Tt]ravessa|[Pp]raca"
    r"|[Qq]uadra|[Cc]arrera|[Uu]l\.|[Uu]lic[ay]|[Aa]l\.|[Aa]lej[ai]|[Pp]lac|[Pp]lacu|[Oo]s\.|[Oo]siedl[eu]|[Tt]rg"
    r"|[Nn]amesti|[Rr]ond[oa]|[Bb]ulwar|[Ss]kwer|[Jj]alan|[Jj]l\.|[Oo]dos|[Ll]eoforos|[Ss]quare|[Aa]llee"
)
# Endings that make a word a street in the Germanic, Nordic, Baltic and Hungarian languages.
STREET_ENDING: Final = (
    "strasse|strase|gasse|weg|platz|allee|damm|ufer|steig|graben|bruecke|straat|laan|plein|kade|hove|dreef|singel"
    "|gata|gatan|gaten|gade|vej|veien|vegen|vagen|straeti|strati|stien|braut|vegur|torg|torget|terrasse"
    "|katu|ntie|kuja|polku|rinne|tanav|maantee|puiestee|iela|gatve|vangen|vanget|vollen|backen|stigen"
)
UNIT: Final = (
    r"(?:[Aa]pt|[Aa]partment|[Ss]uite|[Ss]te|[Uu]nit|[Ff]lat|[Rr]oom|[Rr]m|[Ff]loor|[Ff]l|[Bb]uilding"
    r"|[Bb]ldg|[Ll]okal|m\.)"
    r"\.?[ ]?#?[0-9]{1,5}[A-Za-z]?"
)
COUNTRY: Final = (
    "Afghanistan|Albania|Algeria|Argentina|Armenia|Australia|Austria|Azerbaijan|Bangladesh|Belarus"
    "|Belgium|Bolivia|Bosnia"
    "|Brazil|Bulgaria|Cambodia|Cameroon|Canada|Chile|China|Colombia|Croatia|Cuba|Cyprus|Czechia|Czech Republic|Denmark"
    "|Ecuador|Egypt|England|Estonia|Ethiopia|Finland|France|Georgia|Germany|Ghana|Greece|Greenland"
    "|Greenlander|Hong Kong"
    "|Hungary|Iceland|India|Indonesia|Iran|Iraq|Ireland|Israel|Italy|Jamaica|Japan|Jordan|Kazakhstan|Kenya|Korea|Kuwait"
    "|Laos|Latvia|Lebanon|Libya|Liechtenstein|Lithuania|Luxembourg|Malaysia|Malta|Mexico|Moldova"
    "|Monaco|Mongolia|Morocco"
    "|Nepal|Netherlands|New Zealand|Nigeria|Norway|Oman|Pakistan|Panama|Paraguay|Peru|Philippines"
    "|Poland|Polska|Portugal"
    "|Qatar|Romania|Russia|Saudi Arabia|Scotland|Serbia|Singapore|Slovakia|Slovenia|South Africa|South Korea|Spain"
    "|Sri Lanka|Sweden|Switzerland|Taiwan|Thailand|Tunisia|Turkey|UAE|UK|Ukraine|United Arab Emirates|United Kingdom"
    "|United States|Uruguay|USA|US|Uzbekistan|Venezuela|Vietnam|Viet Nam|Wales|Zimbabwe"
)
