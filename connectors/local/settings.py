"""From `local:<target>` and `--set key=value` to a model class and its arguments. Imports the target's module."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin

import msgspec

from connectors.local.model import LocalModel
from connectors.local.parrot import Parrot
from harness.core.errors import ConfigError, PrerequisiteError, nearest
from harness.core.plugins import found

BUNDLED: dict[str, type[LocalModel]] = {"": Parrot, "parrot": Parrot}
MODELS = "firstpacket.local_models"
"""Entry point group of named models: `--peer local:<name>`."""


def place_of(target: str) -> str:
    """The `package.module:Class` of an entry point's name; empty for any other target."""
    points = found(MODELS)
    return points[target].value if target in points else ""


def model_class(target: str, place: str = "") -> type[LocalModel]:
    """The class behind `target`: a bundled name, an entry point, or `package.module:Class`. place: where a name was
    found already.

    Raises ConfigError (no such module or class, not a LocalModel) or PrerequisiteError (its own imports fail).
    """
    if target in BUNDLED:
        return BUNDLED[target]
    points = found(MODELS)
    path = place or (points[target].value if target in points else target)
    module_name, colon, class_name = path.partition(":")
    if not (colon and module_name and class_name):
        names = [name for name in [*BUNDLED, *points] if name]
        raise ConfigError(f"local:{target} is neither package.module:Class nor a model: {nearest(target, names)}")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as exc:
        if exc.name and (module_name == exc.name or module_name.startswith(exc.name + ".")):
            raise ConfigError(f"local:{target}: there is no module {exc.name} here") from exc
        raise PrerequisiteError(f"local:{target} needs {exc.name}, which is not installed") from exc
    except ImportError as exc:
        raise PrerequisiteError(f"local:{target} cannot be imported: {exc}") from exc
    found_class = getattr(module, class_name, None)
    if found_class is None:
        classes = [name for name, value in vars(module).items() if inspect.isclass(value)]
        raise ConfigError(f"{module_name} has no {class_name}: {nearest(class_name, classes)}")
    if not (inspect.isclass(found_class) and issubclass(found_class, LocalModel)):
        raise ConfigError(f"{path} is not a subclass of connectors.local.model.LocalModel")
    return found_class


def arguments(model: type[LocalModel], settings: Mapping[str, str]) -> dict[str, Any]:
    """`settings` as keyword arguments of `model`, converted to their annotated types.

    Raises ConfigError for a key that it has not (with the nearest that it has), a value that does not fit its type,
    and a setting that has no default and was not given.
    """
    takes = {
        name: parameter
        for name, parameter in inspect.signature(model, eval_str=True).parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }
    converted: dict[str, Any] = {}
    for key, value in settings.items():
        if key not in takes:
            known = nearest(key, takes) if takes else "it takes none"
            raise ConfigError(f"{model.__name__} has no setting {key!r}: {known}")
        annotation = takes[key].annotation
        kind = str if annotation is inspect.Parameter.empty else annotation
        try:
            converted[key] = msgspec.convert(value, kind, strict=False)
        except msgspec.ValidationError as exc:
            raise ConfigError(f"{model.__name__}: {key}={value}: {_wanted(kind, str(exc))}") from exc
    missing = [name for name, p in takes.items() if p.default is p.empty and name not in settings]
    if missing:
        raise ConfigError(f"{model.__name__} needs --set {missing[0]}=...")
    return converted


def _wanted(kind: Any, complaint: str) -> str:
    """What a setting of type `kind` takes, in plain words; of an unusual type, msgspec's complaint."""
    if get_origin(kind) is Literal:
        return f"needs {' or '.join(str(choice) for choice in get_args(kind))}"
    for name, words in (("`int", "a whole number"), ("`float", "a number"), ("`bool", "true or false")):
        if complaint.startswith(f"Expected {name}"):
            return f"needs {words}"
    return complaint
