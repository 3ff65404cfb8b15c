"""What stored checkpoints have in common: the names of their fields, as the serializer writes them.

Short values are compressed against these bytes, which are part of the format: never change them. Other ones would need
another first byte in front of what is compressed against them.
"""

from __future__ import annotations

_HUMAN = (
    b"\xa7msgpack\xc5\x01\x91\xc8\x01\x05\x94\xbdlangchain_core.messages.human\xacHumanMessage\x86\xa7content\xd9"
    b"\xb1additional_kwargs\x80\xb1response_metadata\x80\xa4type\xa5human\xa4name\xc0\xa2id\xd9$\xb3model_validate_json"
)
_SYSTEM = b"\x05\x94\xbelangchain_core.messages.system\xadSystemMessage\x86\xa7content\xa4type\xa6system\xa4name\xc0"
_CALL = b"\xaatool_calls\x91\x84\xa4name\xa4args\x81\xa2id\xa4type\xa9tool_call\xb2invalid_tool_calls\x90"
_USAGE = b"\xaeusage_metadata\x83\xacinput_tokens\xadoutput_tokens\xactotal_tokens"
_RESULT = (
    b"\x05\x94\xbclangchain_core.messages.tool\xabToolMessage\x89\xa7content\xb1additional_kwargs\x80"
    b"\xb1response_metadata\x80\xa4type\xa4tool\xa4name\xa2id\xd9$\xactool_call_id\xa8artifact\xc0\xa6status\xa7success"
    b"\xb3model_validate_json"
)
_ANSWER = (
    b"\x05\x94\xbalangchain_core.messages.ai\xa9AIMessage\x89\xa7content\xda\x02\xb1additional_kwargs\x80"
    b"\xb1response_metadata\x80\xa4type\xa2ai\xa4name\xc0\xa2id\xd9$\xaatool_calls\x90\xb2invalid_tool_calls\x90"
    b"\xaeusage_metadata\xc0\xb3model_validate_json"
)
_METADATA = b"\x92\xa7msgpack\xc4\x83\xa6source\xa5input\xa6source\xa4loop\xa4step\xa7parents\x80\xa6run_id\xd9$"
_VERSION = b"\xd940000000000000000000000000000000"
_BODY = (
    b"\x94\x01\xa7msgpack\xc5\x02\x87\xa1v\x04\xa2ts\xd9 20-T:.+00:00\xa2id\xd9$-6-8-\xb0channel_versions\x84"
    + b"".join((b"\xa9__start__", _VERSION, b"1.0.\xa8messages", _VERSION, b"2.0.\xafbranch:to:agent", _VERSION))
    + b"3.0.\xafbranch:to:tools\xafbranch:to:model\xadversions_seen\x83\xa9__input__\x80\xa9__start__\x81\xa9__start__"
    + b"\xd930000000000000000000000000000000"
    + b"1.0.\xa5agent\x81\xa5tools\x81\xa5model\x81\xafbranch:to:model\xd93\xb0updated_channels\x92\xafbranch:to:model"
    b"\xa8messages\xaechannel_values\x82\xa8messages\x00\xafbranch:to:model\x01\x92\x92\x02\x93\xc4\x10\x93\x00\xa4null"
    b"\xc4\x00"
)
SHAPES = b"".join((_SYSTEM, _USAGE, _CALL, _RESULT, _ANSWER, _HUMAN, _METADATA, _BODY))
