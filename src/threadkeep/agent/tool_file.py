"""`tools.py` of an assistant's folder: its public functions become tools, or the file is refused with line and fix."""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

from pydantic import create_model
from pydantic.errors import PydanticUserError

from threadkeep.agent.places import refused
from threadkeep.agent.tools import Tool, ToolContext
from threadkeep.ports.chat import ToolSpec

__all__ = ["Tool", "load_tools"]


def load_tools(path: Path) -> Sequence[Tool]:
    """Every public function that the file itself defines, in its order, or those that it lists in `TOOLS`."""
    module = _loaded(path)
    listed: Any = getattr(module, "TOOLS", None)
    functions = list(listed) if listed is not None else _public(module)
    return [_tool(path, function) for function in functions]


def _loaded(path: Path) -> ModuleType:
    name = "threadkeep_assistant_" + re.sub(r"\W", "_", str(path.resolve().parent))
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise refused(path, None, "cannot be loaded", "make it a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # annotations are looked up there
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise refused(path, error.lineno, f"is not Python ({error.msg})", "correct the line") from None
    except Exception as error:  # whatever the file does while it is imported
        frames = [one.lineno for one in traceback.extract_tb(error.__traceback__) if one.filename == str(path)]
        line = frames[-1] if frames else 1
        raise refused(path, line, f"fails on import ({type(error).__name__}: {error})", "correct the line") from None
    return module


def _public(module: ModuleType) -> list[Callable[..., Any]]:
    return [
        value
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    ]


def _tool(path: Path, function: Any) -> Tool:
    if not inspect.isfunction(function):
        raise refused(path, None, f"TOOLS holds {function!r}", "list functions")
    line = function.__code__.co_firstlineno
    if not inspect.getdoc(function):
        raise refused(path, line, f"{function.__name__} has no docstring", "say what it does: the model reads it")
    try:
        hints = get_type_hints(function)
    except NameError as error:
        raise refused(path, line, f"{function.__name__}: {error}", "import what its annotations name") from None
    fields: dict[str, Any] = {}
    context: str | None = None
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            raise refused(path, line, f"{function.__name__} takes *{name}", "name every parameter")
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise refused(path, line, f"{function.__name__} takes {name} by its place alone", "take out the slash")
        if name not in hints:
            raise refused(path, line, f"{function.__name__}: {name} has no annotation", "say what type it has")
        if hints[name] is ToolContext:
            context = name
            continue
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[name] = (hints[name], default)
    try:
        arguments = create_model(function.__name__, **fields)
        schema = arguments.model_json_schema()
    except (PydanticUserError, TypeError) as error:
        problem = f"{function.__name__}: a parameter's type has no JSON form ({type(error).__name__})"
        raise refused(path, line, problem, "use str, int, float, bool, lists or dicts of them, or Literal") from None
    schema.pop("title", None)
    spec = ToolSpec(function.__name__, inspect.getdoc(function) or "", schema)
    return Tool(spec, function, arguments, context)
