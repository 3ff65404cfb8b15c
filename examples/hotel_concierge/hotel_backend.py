"""A small hotel: what the concierge's tools talk to. `uvicorn hotel_backend:app --port 8090`."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import FastAPI, Header, HTTPException
from pydantic import BaseModel

ROOMS = (
    {"room": "101", "kind": "single", "guests": 1, "price": 320},
    {"room": "204", "kind": "double", "guests": 2, "price": 450},
    {"room": "501", "kind": "suite", "guests": 4, "price": 890},
)


class Reservation(BaseModel):
    date: str
    time: str
    guests: int
    phone: str


def hotel() -> FastAPI:
    """Each with a book of its own. Reservations are made by guests who show their token."""
    app = FastAPI(title="Grand Hotel")
    book: list[dict[str, Any]] = []
    app.state.book = book

    @app.get("/rooms")
    def rooms(arrival: str, nights: int, guests: int = 2) -> list[dict[str, Any]]:
        return [dict(room, total=room["price"] * nights) for room in ROOMS if room["guests"] >= guests]

    @app.post("/restaurant/reservations", status_code=201)
    def reserve(wanted: Reservation, authorization: Annotated[str | None, Header()] = None) -> dict[str, Any]:
        if not (authorization or "").startswith("Bearer "):
            raise HTTPException(401, "show your token")
        book.append(wanted.model_dump() | {"token": authorization.removeprefix("Bearer ")})
        return {"reservation": f"R{len(book):03}", "date": wanted.date, "time": wanted.time, "guests": wanted.guests}

    return app


app = hotel()
