"""Polish sentences and the makers of what they hold."""

from __future__ import annotations

import random

from tests.data.pii_vi import card, digits, ip, small

FIRST = ["Anna", "Piotr", "Katarzyna", "Michał", "Agnieszka", "Łukasz", "Zofia", "Paweł", "Małgorzata", "Jakub"]
LAST = ["Nowak", "Kowalska", "Wiśniewski", "Wójcik", "Zielińska", "Szymański", "Dąbrowska", "Kozłowski", "Jabłońska"]
STREETS = [
    "Długa",
    "Marszałkowska",
    "Świętokrzyska",
    "Jana Pawła II",
    "3 Maja",
    "Mickiewicza",
    "Krótka",
    "Polna",
    "Żeromskiego",
]
TOWNS = ["Warszawa", "Kraków", "Łódź", "Wrocław", "Poznań", "Gdańsk", "Nowy Sącz", "Bielsko-Biała"]
DOMAINS = ["wp.pl", "onet.pl", "gmail.com", "interia.pl", "o2.pl", "firma.com.pl"]
ASCII = ["anna", "piotr", "kasia", "michal", "agnieszka", "lukasz", "zofia", "pawel"]
MONTHS = ["stycznia", "lutego", "marca", "kwietnia", "maja", "czerwca"]
MONTHS += ["lipca", "sierpnia", "września", "października", "listopada", "grudnia"]
OSOBA = ["nowak", "kowalska", "wisniewski", "wojcik", "zielinska", "szymanski"]


def email(rng: random.Random) -> str:
    number = rng.choice(["", str(rng.randint(1, 99))])
    return f"{rng.choice(ASCII)}{rng.choice(['.', '_', ''])}{rng.choice(OSOBA)}{number}@{rng.choice(DOMAINS)}"


def obfuscated_email(rng: random.Random) -> str:
    name, (host, _, rest) = rng.choice(ASCII), rng.choice(DOMAINS).partition(".")
    return rng.choice(
        [f"{name} małpa {host} kropka pl", f"{name}[at]{host}.{rest}", f"{name} (at) {host} (dot) {rest}"]
    )


def mobile(rng: random.Random) -> str:
    number = rng.choice(["50", "51", "53", "57", "60", "66", "69", "72", "73", "78", "79", "88"]) + digits(rng, 7)
    spaced = f"{number[:3]} {number[3:6]} {number[6:]}"
    return rng.choice(
        [spaced, spaced, spaced.replace(" ", "-"), f"+48 {spaced}", f"+48{number}", f"0048 {spaced}", number]
    )


def landline(rng: random.Random) -> str:
    area, rest = rng.choice(["22", "12", "71", "61", "58"]), rng.choice("23456789") + digits(rng, 6)
    grouped = f"{rest[:3]} {rest[3:5]} {rest[5:]}"
    return rng.choice([f"{area} {grouped}", f"({area}) {grouped}", f"{area} {grouped} wew. {rng.randint(1, 99)}"])


def weighted(number: str, weights: tuple[int, ...], modulus: int) -> int:
    return sum(int(digit) * weight for digit, weight in zip(number, weights, strict=True)) % modulus


def pesel(rng: random.Random) -> str:
    year, month, day = rng.randint(1940, 2009), rng.randint(1, 12), rng.randint(1, 28)
    partial = f"{year % 100:02}{month + (20 if year >= 2000 else 0):02}{day:02}{digits(rng, 4)}"
    return partial + str(-weighted(partial, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3), 10) % 10)


def nip(rng: random.Random) -> str:
    while True:
        partial = rng.choice("123456789") + rng.choice("123456789") + digits(rng, 7)
        check = weighted(partial, (6, 5, 7, 2, 3, 4, 5, 6, 7), 11)
        if check < 10:
            number = f"{partial}{check}"
            return rng.choice(
                [
                    number,
                    f"{number[:3]}-{number[3:6]}-{number[6:8]}-{number[8:]}",
                    f"{number[:3]}-{number[3:5]}-{number[5:7]}-{number[7:]}",
                ]
            )


def regon(rng: random.Random) -> str:
    partial = digits(rng, 8)
    return partial + str(weighted(partial, (8, 9, 2, 3, 4, 5, 6, 7), 11) % 10)


def dowod(rng: random.Random) -> str:
    letters, serial = "".join(rng.choice("ABCDEFGHIJKLMNPRSTUVWXYZ") for _ in range(3)), digits(rng, 5)
    values = [int(char, 36) for char in letters + serial]
    check = sum(value * weight for value, weight in zip(values, (7, 3, 1, 7, 3, 1, 7, 3), strict=True)) % 10
    return f"{letters}{rng.choice(['', ' '])}{check}{serial}"


def account_digits(rng: random.Random) -> str:
    body = digits(rng, 24)
    return f"{98 - int(body + '252100') % 97:02}{body}"


def iban(rng: random.Random) -> str:
    number = "PL" + account_digits(rng)
    return rng.choice([number, " ".join(number[i : i + 4] for i in range(0, 28, 4))])


def account(rng: random.Random) -> str:
    number = account_digits(rng)
    return rng.choice([number, number[:2] + "".join(f" {number[i : i + 4]}" for i in range(2, 26, 4))])


def passport(rng: random.Random) -> str:
    return rng.choice(["EA", "EB", "EH", "ET", "AB"]) + digits(rng, 7)


def plate(rng: random.Random) -> str:
    town = rng.choice(["WA", "KR", "PO", "GD", "WX", "DW", "LU", "WPR", "KNS"])
    return f"{town} {rng.choice([digits(rng, 5), digits(rng, 4) + 'A', digits(rng, 3) + 'KL'])}"


def birthday(rng: random.Random) -> str:
    day, month, year = rng.randint(1, 28), rng.randint(1, 12), rng.randint(1950, 2009)
    return rng.choice(
        [f"{day:02}.{month:02}.{year}", f"{day} {MONTHS[month - 1]} {year}", f"{year}-{month:02}-{day:02}"]
    )


def name(rng: random.Random) -> str:
    return f"{rng.choice(FIRST)} {rng.choice(LAST)}"


def address(rng: random.Random) -> str:
    house = rng.choice(
        [
            str(rng.randint(1, 200)),
            f"{rng.randint(1, 99)}/{rng.randint(1, 60)}",
            f"{rng.randint(1, 99)}a",
            f"{rng.randint(1, 99)} m. {rng.randint(1, 40)}",
        ]
    )
    street = rng.choice(["ul. ", "al. ", "ulica ", "os. "]) + rng.choice(STREETS)
    return f"{street} {house}{rng.choice([',', ''])} {digits(rng, 2)}-{digits(rng, 3)} {rng.choice(TOWNS)}"


def password(rng: random.Random) -> str:
    return rng.choice(["Kotek", "burza", "Zima", "lipiec"]) + digits(rng, 3) + rng.choice(["!", "#Q", "z", "_x"])


def price(rng: random.Random) -> str:
    return rng.choice(
        [
            f"{rng.randint(1, 999)} zł",
            f"{rng.randint(1, 99)} {rng.randint(100, 999)},00 zł",
            f"{rng.randint(1, 999)},99 PLN",
        ]
    )


def order(rng: random.Random) -> str:
    return rng.choice(
        [f"ZAM/{digits(rng, 5)}/2025", f"#{digits(rng, 6)}", digits(rng, 8), f"PL-{digits(rng, 4)}-{digits(rng, 4)}"]
    )


def date(rng: random.Random) -> str:
    return rng.choice(
        [
            f"{rng.randint(1, 28)}.{rng.randint(1, 12):02}.2025",
            f"2025-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}",
            f"{rng.randint(1, 28)} maja",
        ]
    )


MAKERS: dict[str, tuple[str, object]] = {
    "email": ("EMAIL", email),
    "hidden": ("EMAIL", obfuscated_email),
    "mobile": ("PHONE", mobile),
    "landline": ("PHONE", landline),
    "pesel": ("NATIONAL_ID", pesel),
    "nip": ("NATIONAL_ID", nip),
    "regon": ("NATIONAL_ID", regon),
    "dowod": ("NATIONAL_ID", dowod),
    "card": ("CREDIT_CARD", card),
    "iban": ("IBAN", iban),
    "account": ("BANK_ACCOUNT", account),
    "passport": ("PASSPORT", passport),
    "plate": ("PLATE", plate),
    "birthday": ("DATE_OF_BIRTH", birthday),
    "name": ("NAME", name),
    "address": ("ADDRESS", address),
    "password": ("SECRET", password),
    "ip": ("IP", ip),
    "price": ("", price),
    "order": ("", order),
    "date": ("", date),
    "small": ("", small),
}
TEMPLATES = [
    "Mój numer telefonu to {mobile}, proszę dzwonić po 17.",
    "tel. {mobile}",
    "Zadzwoń do mnie: {mobile} albo napisz na {email}.",
    "Proszę o kontakt pod {mobile}, sprawa pilna.",
    "kom. {mobile}, biuro {landline}",
    "Recepcja: {landline}, czynna do 22.",
    "Faks {landline}",
    "Napisz SMS na {mobile} jak dojedziesz",
    "Mój adres e-mail to {email}.",
    "wyślij fakturę na {email}, dzięki",
    "Zmiana maila z {email} na {email}, proszę o potwierdzenie.",
    "piszcie na {hidden}",
    "Mój PESEL to {pesel}.",
    "PESEL: {pesel}, data urodzenia: {birthday}",
    "W systemie widnieje {pesel} zamiast poprawnego numeru.",
    "Podaję numer PESEL {pesel} i telefon {mobile}.",
    "NIP firmy: {nip}",
    "faktura na NIP {nip}, kwota {price}",
    "REGON {regon}, zamówienie {order}",
    "Dowód osobisty {dowod}, ważny do 2030 roku.",
    "seria i numer dowodu: {dowod}",
    "Karta {card} została zablokowana.",
    "zapłaciłem kartą kredytową {card}, kwota {price}",
    "Numer karty: {card}",
    "Proszę o przelew na konto {account}.",
    "nr rachunku {account}, odbiorca {name}",
    "IBAN: {iban}",
    "Zwrot {price} poproszę na {iban}.",
    "Paszport nr {passport}, wylot {date}.",
    "mój paszport {passport} traci ważność",
    "Samochód o numerze rejestracyjnym {plate} stoi na chodniku.",
    "tablice {plate}, parking poziom {small}",
    "Data urodzenia: {birthday}",
    "Urodziłam się {birthday} w Krakowie.",
    "Nazywam się {name} i chcę złożyć reklamację.",
    "Imię i nazwisko: {name}",
    "Mieszkam przy {address}.",
    "Adres dostawy: {address}",
    "hasło do wifi: {password}",
    "moje hasło to {password}, nie działa",
    "serwer {ip} nie odpowiada od {date}",
    "Zamówienie {order} na kwotę {price} z dnia {date} nie dotarło.",
    "Kupiłem {small} sztuk po {price}, faktura {order}.",
    "Pokój {small} na piętrze {small}, cena {price} za noc, od {date} do {date}.",
    "W 2024 roku sprzedaliśmy {small} sztuk, w 2025 już {small}.",
    "Pociąg IC {small} odjeżdża o 14:05 z peronu 3.",
]
