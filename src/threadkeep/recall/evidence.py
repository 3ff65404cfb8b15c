"""What ranking needs to know of one user's messages; an index hands it over, so the values stand with its port."""

from threadkeep.ports.evidence import Evidence as Evidence
from threadkeep.ports.evidence import Place as Place
from threadkeep.ports.evidence import Posting as Posting
from threadkeep.ports.evidence import Shape as Shape
from threadkeep.ports.evidence import Statistics as Statistics
from threadkeep.ports.evidence import Turn as Turn
