"""What the reflection module asks of the core."""

import json
from dataclasses import asdict

from threadkeep import Reflection


def test_a_reflection_is_a_summary_and_a_list_of_causes() -> None:
    reflection = Reflection("訂房失敗", ("日期已滿", "未付訂金"))
    assert json.loads(json.dumps(asdict(reflection))) == {"summary": "訂房失敗", "causes": ["日期已滿", "未付訂金"]}
    assert asdict(Reflection("nothing went wrong"))["causes"] == ()
