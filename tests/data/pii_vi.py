"""Vietnamese sentences and the makers of what they hold."""

from __future__ import annotations

import random

PROVINCES = ["001", "024", "031", "038", "040", "048", "056", "067", "075", "079", "083", "092"]
FAMILY = ["Nguyễn", "Trần", "Lê", "Phạm", "Hoàng", "Huỳnh", "Phan", "Vũ", "Võ", "Đặng", "Bùi", "Đỗ"]
MIDDLE = ["Văn", "Thị", "Minh", "Ngọc", "Thanh", "Hữu", "Quốc", "Thu", "Đức"]
GIVEN = ["An", "Bình", "Châu", "Dũng", "Hạnh", "Hùng", "Lan", "Linh", "Nam", "Phương", "Tuấn", "Trang", "Vy"]
STREETS = [
    "Lê Lợi",
    "Nguyễn Trãi",
    "Trần Hưng Đạo",
    "Hai Bà Trưng",
    "Lý Thường Kiệt",
    "Điện Biên Phủ",
    "Cầu Giấy",
    "Võ Văn Kiệt",
]
WARDS = ["Bến Nghé", "Dịch Vọng", "Tân Định", "Hòa Khánh", "An Phú", "Láng Hạ", "Phú Mỹ"]
DISTRICTS = ["Cầu Giấy", "Đống Đa", "Bình Thạnh", "Gò Vấp", "Hải Châu", "Ninh Kiều", "Tân Bình"]
CITIES = ["Hà Nội", "Đà Nẵng", "Cần Thơ", "Hải Phòng", "TP.HCM"]
LATIN = ["an", "binh", "chau", "dung", "hanh", "linh", "phuong", "tuan", "trang", "vy"]
DOMAINS = ["gmail.com", "yahoo.com.vn", "outlook.com", "fpt.vn", "company.com.vn", "hcmut.edu.vn"]


def digits(rng: random.Random, count: int) -> str:
    return "".join(rng.choice("0123456789") for _ in range(count))


def email(rng: random.Random) -> str:
    return (
        f"{rng.choice(LATIN)}{rng.choice(['.', '_', ''])}{rng.choice(LATIN)}{rng.randint(1, 99)}@{rng.choice(DOMAINS)}"
    )


def obfuscated_email(rng: random.Random) -> str:
    name, (host, _, rest) = rng.choice(LATIN) + str(rng.randint(1, 99)), rng.choice(DOMAINS).partition(".")
    return rng.choice([f"{name} [at] {host} [dot] {rest}", f"{name}(at){host}.{rest}", f"{name} @ {host}.{rest}"])


def mobile(rng: random.Random) -> str:
    prefix = rng.choice(
        ["032", "035", "038", "056", "059", "070", "077", "079", "081", "085", "090", "091", "093", "096", "098"]
    )
    rest = digits(rng, 7)
    return rng.choice(
        [
            prefix + rest,
            f"{prefix} {rest[:3]} {rest[3:]}",
            f"{prefix}.{rest[:3]}.{rest[3:]}",
            f"{prefix}-{rest[:3]}-{rest[3:]}",
            f"+84 {prefix[1:]} {rest[:3]} {rest[3:]}",
            f"+84{prefix[1:]}{rest}",
            f"{prefix}{rest[0]} {rest[1:4]} {rest[4:]}",
        ]
    )


def landline(rng: random.Random) -> str:
    area = rng.choice(["024", "028", "0236", "0225"])
    rest = rng.choice("2367") + digits(rng, 7 if len(area) == 3 else 6)
    return rng.choice(
        [f"{area} {rest[:4]} {rest[4:]}", f"({area}) {rest[:4]} {rest[4:]}", f"({area}) {rest[:4]}.{rest[4:]}"]
    )


def spaced_mobile(rng: random.Random) -> str:
    return " ".join("09" + rng.choice("01346789") + digits(rng, 7))


def cccd(rng: random.Random) -> str:
    number = rng.choice(PROVINCES) + rng.choice("0123") + digits(rng, 8)
    return rng.choice([number, number, f"{number[:3]} {number[3:6]} {number[6:9]} {number[9:]}"])


def cmnd(rng: random.Random) -> str:
    return rng.choice("0123") + digits(rng, 8)


def mst(rng: random.Random) -> str:
    while True:
        number = "0" + rng.choice("123456789") + digits(rng, 7)
        check = (
            10
            - sum(int(digit) * weight for digit, weight in zip(number, (31, 29, 23, 19, 17, 13, 7, 5, 3), strict=True))
            % 11
        )
        if 0 <= check <= 9 and number[2:] != "0000000":
            return rng.choice([f"{number}{check}", f"{number}{check}-00{rng.randint(1, 9)}"])


def luhn_check(partial: str) -> str:
    total = sum(sum(divmod(2 * int(digit), 10)) for digit in partial[::-2]) + sum(
        int(digit) for digit in partial[-2::-2]
    )
    return str(-total % 10)


def card(rng: random.Random) -> str:
    partial = rng.choice(["4", "51", "55", "9704"][:3])
    partial += digits(rng, 15 - len(partial))
    number = partial + luhn_check(partial)
    return rng.choice(
        [
            number,
            " ".join(number[i : i + 4] for i in range(0, 16, 4)),
            "-".join(number[i : i + 4] for i in range(0, 16, 4)),
        ]
    )


def account(rng: random.Random) -> str:
    return rng.choice(
        [digits(rng, rng.choice([9, 10, 12, 13, 14])), f"{digits(rng, 4)} {digits(rng, 4)} {digits(rng, 4)}"]
    )


def passport(rng: random.Random) -> str:
    return rng.choice("BCNEP") + digits(rng, 7)


def plate(rng: random.Random) -> str:
    head = f"{rng.choice([29, 30, 43, 50, 51, 59, 61, 65, 92])}{rng.choice('ABCDEFGHK')}"
    return rng.choice(
        [
            f"{head}-{digits(rng, 3)}.{digits(rng, 2)}",
            f"{head}{rng.randint(1, 9)}-{digits(rng, 3)}.{digits(rng, 2)}",
            f"{head}-{digits(rng, 5)}",
        ]
    )


def birthday(rng: random.Random) -> str:
    day, month, year = rng.randint(1, 28), rng.randint(1, 12), rng.randint(1950, 2009)
    return rng.choice([f"{day:02}/{month:02}/{year}", f"{day}-{month}-{year}", f"{day}/{month}/{year}"])


def name(rng: random.Random) -> str:
    return f"{rng.choice(FAMILY)} {rng.choice(MIDDLE)} {rng.choice(GIVEN)}"


def address(rng: random.Random) -> str:
    house = rng.choice(
        [str(rng.randint(1, 400)), f"{rng.randint(1, 200)}/{rng.randint(1, 60)}", f"{rng.randint(1, 99)}B"]
    )
    ward, district = (
        rng.choice([f"phường {rng.choice(WARDS)}", f"P.{rng.randint(1, 20)}"]),
        rng.choice([f"quận {rng.choice(DISTRICTS)}", f"Q.{rng.randint(1, 12)}", f"quận {rng.randint(1, 12)}"]),
    )
    street = rng.choice(["đường ", "phố ", ""]) + rng.choice(STREETS)
    return f"{rng.choice(['', 'số '])}{house} {street}, {ward}, {district}, {rng.choice(CITIES)}"


def password(rng: random.Random) -> str:
    return rng.choice(["Meo", "hoa", "Sao", "bien"]) + digits(rng, 4) + rng.choice(["!", "@x", "#Q", "z"])


def ip(rng: random.Random) -> str:
    return ".".join(str(rng.randint(1, 254)) for _ in range(4))


def price(rng: random.Random) -> str:
    return rng.choice(
        [
            f"{rng.randint(1, 900)}.000đ",
            f"{rng.randint(1, 99)}.{rng.randint(100, 999)}.000 đồng",
            f"{rng.randint(10, 999)}k",
            f"{rng.randint(1, 9)},5 triệu",
        ]
    )


def order(rng: random.Random) -> str:
    return rng.choice(
        [f"DH{digits(rng, 8)}", f"#{digits(rng, 6)}", f"{digits(rng, 9)}", f"VN-{digits(rng, 4)}-{digits(rng, 4)}"]
    )


def date(rng: random.Random) -> str:
    return rng.choice(
        [
            f"{rng.randint(1, 28)}/{rng.randint(1, 12)}",
            f"{rng.randint(1, 28):02}/{rng.randint(1, 12):02}/2025",
            f"2025-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}",
        ]
    )


def small(rng: random.Random) -> str:
    return str(rng.randint(2, 400))


MAKERS: dict[str, tuple[str, object]] = {
    "email": ("EMAIL", email),
    "hidden": ("EMAIL", obfuscated_email),
    "mobile": ("PHONE", mobile),
    "spaced": ("PHONE", spaced_mobile),
    "landline": ("PHONE", landline),
    "cccd": ("NATIONAL_ID", cccd),
    "cmnd": ("NATIONAL_ID", cmnd),
    "mst": ("NATIONAL_ID", mst),
    "card": ("CREDIT_CARD", card),
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
    "Số điện thoại của mình là {mobile}, gọi sau 6 giờ nhé.",
    "SĐT: {mobile}",
    "anh ơi cho em xin báo giá, em tên {name}, zalo {mobile}",
    "Bạn nhắn tin vào số {mobile} giúp mình với",
    "Mình để lại số {mobile} nha shop",
    "Liên hệ {landline} hoặc {mobile} để đặt bàn {small} người.",
    "Gọi lễ tân {landline} trước 22h.",
    "số em nè {spaced}",
    "Email của tôi là {email}, mong sớm nhận phản hồi.",
    "gửi hóa đơn qua {email} nhé",
    "Cho mình đổi mail từ {email} sang {email}.",
    "mail mình: {hidden}",
    "Số CCCD của tôi là {cccd}, cấp tại Cục Cảnh sát.",
    "căn cước công dân: {cccd}",
    "Em gửi số căn cước {cccd} và sđt {mobile} để làm hồ sơ.",
    "CMND cũ của mình là {cmnd}.",
    "chứng minh nhân dân số {cmnd} hết hạn rồi",
    "Mã số thuế công ty: {mst}",
    "xuất hóa đơn giúp em, MST {mst}, tiền hàng {price}",
    "Thẻ tín dụng {card} bị khóa, giúp tôi mở lại.",
    "số thẻ visa của mình là {card}",
    "Mình muốn hoàn {price} vào thẻ {card}.",
    "STK {account} Vietcombank, chủ tài khoản {name}",
    "Chuyển khoản vào số tài khoản {account} ngân hàng ACB giúp mình.",
    "Hộ chiếu của tôi số {passport}, bay ngày {date}.",
    "passport {passport} còn hạn không anh",
    "Xe biển số {plate} đỗ trước cửa {small} phút rồi.",
    "Bãi xe ghi nhận {plate} vào lúc 8:30.",
    "Ngày sinh: {birthday}",
    "Tôi sinh ngày {birthday}, đặt phòng cho {small} người.",
    "Tôi tên là {name}, muốn đặt phòng ngày {date}.",
    "mình tên {name} ạ",
    "Họ và tên: {name}",
    "Giao hàng đến {address} giúp em.",
    "Địa chỉ: {address}",
    "Nhà tôi ở {address}, giá thuê {price} một tháng.",
    "mật khẩu wifi: {password}",
    "mật khẩu của mình là {password}, đừng nói ai nhé",
    "máy chủ {ip} không truy cập được từ {date}",
    "Đơn hàng {order} giá {price} giao ngày {date} chưa?",
    "Mình mua {small} cái, tổng {price}, mã đơn {order}.",
    "Phòng {small} tầng {small}, giá {price} một đêm, từ {date} đến {date}.",
    "Năm 2024 quán bán được {small} suất, năm 2025 được {small} suất.",
    "Chuyến bay VN{small} cất cánh lúc 14:05 ngày {date}.",
]
