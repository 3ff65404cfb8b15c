"""Private data as people write it to each other: no labels, no capitals, other words, other scripts."""

import pytest

from bench.redaction_score import covered
from tests.unit.redact.test_first_families import masked
from threadkeep.policy.redact import RedactionRules, Redactor, redact

names_too = Redactor(RedactionRules(names="rules"))


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("giao tới 123 Lê Lợi, Q1 nhé", "123 Lê Lợi, Q1"),
        ("giao toi 45 nguyen trai p5 q3", "45 nguyen trai p5 q3"),
        ("nhà em ở 45/12 Nguyễn Văn Cừ nhé", "45/12 Nguyễn Văn Cừ"),
        ("em ở 12 ngõ 34 Trần Duy Hưng", "12 ngõ 34 Trần Duy Hưng"),
        ("phòng 302 tòa nhà B chung cư Linh Đàm", "phòng 302 tòa nhà B chung cư Linh Đàm"),
        ("Marszałkowska 104/122, Warszawa", "Marszałkowska 104/122, Warszawa"),
        ("marszalkowska 104/122 warszawa", "marszalkowska 104/122 warszawa"),
        ("Spotkajmy się przy Puławskiej 12", "Puławskiej 12"),
        ("paczkę proszę na Kościuszki 12/4 w Gdańsku", "Kościuszki 12/4 w Gdańsku"),
        ("wyślij na Zwierzyniecka 7/12, 31-103 Kraków", "Zwierzyniecka 7/12, 31-103 Kraków"),
        ("221b baker street london", "221b baker street london"),
        ("i live at 45 elm st apt 3b", "45 elm st apt 3b"),
        ("flat 3, 12 high street, leeds LS1 4AP", "flat 3, 12 high street, leeds LS1 4AP"),
        ("meet me on Baker Street, London NW1 6XE", "Baker Street, London NW1 6XE"),
        ("12 bis rue victor hugo, appt 3, lyon", "12 bis rue victor hugo, appt 3, lyon"),
        ("Rue Victor Hugo 69002 Lyon", "Rue Victor Hugo 69002 Lyon"),
        ("5 place de la République, 3e étage", "5 place de la République, 3e étage"),
        ("台北市信義區信義路五段7號 89樓", "台北市信義區信義路五段7號 89樓"),
        ("忠孝東路四段 100 號 12 樓", "忠孝東路四段 100 號 12 樓"),
        ("幸福小区3栋2单元501室", "幸福小区3栋2单元501室"),
        ("my office is at Kantstraße 148", "Kantstraße 148"),
    ],
)
def test_an_address_in_everyday_form_is_masked(text, address):
    start = text.index(address)
    spans = list(redact(text).spans)
    assert {kind for _, _, kind in spans} == {"ADDRESS"}
    assert (spans[0].start, spans[-1].end) == (start, start + len(address))
    assert covered(text, start, start + len(address), spans), "rules may share an address, and leave nothing of it"


@pytest.mark.parametrize(
    "text",
    [
        "Năm 1418 Lê Lợi khởi nghĩa Lam Sơn",
        "mua 2 cái áo ở quận 1",
        "quốc lộ 1 đi qua Quảng Ngãi",
        "giao 3 Bánh Mì nhé",
        "Ustawa 12/2020",
        "Polska 2, Niemcy 1",
        "W maju 2020 w Krakowie",
        "5 minutes down the road",
        "the 4 best road bikes",
        "top 10 wall street firms",
        "2 place settings",
        "3號出口見",
        "國道一號塞車",
        "万达广场3楼吃饭",
    ],
)
def test_numbers_beside_names_of_other_things_stay(text):
    assert masked(text) == []


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("kod z SMS-a to 482913", "482913"),
        ("the code from the text is 4829", "4829"),
        ("kod do bramy 1357#", "1357#"),
        ("mã mở cửa là 2580", "2580"),
        ("驗證碼是四八二九一三", "四八二九一三"),
        ("my authenticator shows 615409 now", "615409"),
        ("mk facebook: hoanganh99", "hoanganh99"),
        ("wifi密碼是abc12345", "abc12345"),
        ("the password is correct horse battery staple", "correct horse battery staple"),
        ("my password is sunshine", "sunshine"),
        ("Passwort: Geheim123", "Geheim123"),
        ("la contraseña es gatito77", "gatito77"),
        ("mot de passe : Soleil2021", "Soleil2021"),
        ("hasło do banku to Zima2024!", "Zima2024!"),
        ("BIOS password? maybe L4ptop99", "L4ptop99"),
        ("legal winner thank year wave sausage worth useful legal winner thank yellow",) * 2,
        ("my seed: army van defense carry jealous true garbage claim echo media make crunch",
         "army van defense carry jealous true garbage claim echo media make crunch"),
        ("pin is four eight two one", "four eight two one"),
        ('{\\"password\\": \\"hunter22\\"}', "hunter22"),
        ('{\\"\\u0070assword\\":\\"abcdef1\\"}', "abcdef1"),
        ("new Client({ apiSecret: 'q8w7e6r5t4y3' })", "q8w7e6r5t4y3"),
    ],
)  # fmt: skip
def test_a_secret_behind_other_words_is_masked(text, secret):
    assert masked(text) == [(secret, "SECRET")]


@pytest.mark.parametrize(
    "text",
    [
        "the password is wrong and I can't log in",
        "my password is expired.",
        "the password is case sensitive.",
        "hasło to podstawa bezpieczeństwa",
        "mật khẩu là gì vậy",
        "密碼是什麼",
        "the seed phrase is the key to your wallet",
        "error code 404",
        "verification code expires in 5 minutes",
        "a long sentence where many words follow each other and nobody has to hide a single one",
        "token上限是128k嗎",
    ],
)
def test_talk_about_secrets_stays(text):
    assert masked(text) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("nam chấm nguyen a còng gmail chấm com", [("nam chấm nguyen a còng gmail chấm com", "EMAIL")]),
        ("jan podkreślnik kowalski małpa wp kropka pl", [("jan podkreślnik kowalski małpa wp kropka pl", "EMAIL")]),
        ("ming小老鼠gmail點com", [("ming小老鼠gmail點com", "EMAIL")]),
        ("john underscore smith at gmail dot com", [("john underscore smith at gmail dot com", "EMAIL")]),
        (
            "numer to sześćset jeden dwieście trzydzieści cztery pięćset sześćdziesiąt siedem",
            [("sześćset jeden dwieście trzydzieści cztery pięćset sześćdziesiąt siedem", "PHONE")],
        ),
        ("手機是〇九一二 三四五 六七八", [("〇九一二 三四五 六七八", "PHONE")]),
        ("電話０９１２３４５６７８", [("０９１２３４５６７８", "PHONE")]),
        ("data ur.: 12.05.1990", [("12.05.1990", "DATE_OF_BIRTH")]),
        ("民國79年5月12日生", [("民國79年5月12日", "DATE_OF_BIRTH")]),
        ("生日是民國七十九年五月十二日", [("民國七十九年五月十二日", "DATE_OF_BIRTH")]),
        ("my birthday is on May 12", [("May 12", "DATE_OF_BIRTH")]),
    ],
)
def test_addresses_numbers_and_dates_in_words_are_masked(text, found):
    assert masked(text) == found


@pytest.mark.parametrize("text", ["統一編號 12345675", "公司統編：04595257", "company number 01234567"])
def test_the_number_of_a_company_stays(text):
    assert masked(text) == []


@pytest.mark.parametrize(
    "text", ["I love Mr. Bean", "王先生餐廳好吃", "czytam Pan Tadeusz", "Mr. Chow Restaurant", "Dr Pepper is sweet"]
)
def test_works_and_places_with_a_title_are_no_names(text):
    assert names_too(text).text == text


def test_an_escaped_text_keeps_the_offsets_of_the_original():
    text = 'log: {\\"mail\\": \\"\\u0061nn@example.org\\"}'
    assert masked(text) == [("\\u0061nn@example.org", "EMAIL")]


@pytest.mark.parametrize(
    "text",
    [
        "seen it at any point during the event",
        "many people at one point or another",
        "fully charged, at which point it stops",
        "road tyres take 90-100 PSI",
        '<input type="password" id="password" name="password" required>',
        '1. **"The White Vault"**: a podcast similar to "Sword and Star"',
        "They are trained.\n\n**Check** credentials before you book",
        "Mix cooked quinoa, spinach, cherry tomatoes, bell peppers, red onion, walnuts, pumpkin seeds for 12 guests",
        "new_user = User(username=username, password=hashed_password)",
        "access_token = create_access_token(identity=user.id)",
        "Weekly pass: £20.50 (bus and tram)",
        "at 5 p.m. 58 The Leapfrog group met",
    ],
)
def test_prose_lists_and_markup_stay(text: str) -> None:
    assert redact(text).text == text


@pytest.mark.parametrize(
    "text",
    [
        "army van defense carry jealous true garbage claim echo media make crunch",
        "these 12 words: army van defense carry jealous true garbage claim echo media make crunch",
        "1. army 2. van 3. defense 4. carry 5. jealous 6. true 7. garbage 8. claim 9. echo 10. media 11. oak 12. ivy",
    ],
)
def test_a_recovery_phrase_alone_counted_or_numbered_is_masked(text: str) -> None:
    assert "garbage" not in redact(text).text
