"""A fact in a run: JSON, read only when somebody looks at it."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping
from typing import Any

from pydantic import BaseModel, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema, from_json, to_json


class WrittenFact(Mapping[str, Any]):
    """Acts as the dictionary that it stands for.

    The facts of a thousand hosts take 160 MB as JSON and more than a gigabyte as dictionaries; a run holds them all,
    and whoever reads it looks at one after the other.
    """

    __slots__ = ("json",)

    def __init__(self, text: bytes) -> None:
        self.json = text  # one JSON object, ASCII, on one line

    @classmethod
    def of(cls, fact: BaseModel) -> WrittenFact:
        """The fact as it is written."""
        return cls(fact.model_dump_json(ensure_ascii=True).encode())

    def read(self) -> dict[str, Any]:
        """A new dictionary."""
        value: dict[str, Any] = from_json(self.json)
        return value

    def __getitem__(self, name: str) -> Any:
        return self.read()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.read())

    def __len__(self) -> int:
        return len(self.read())

    def __bool__(self) -> bool:
        return self.json != b"{}"

    def items(self) -> ItemsView[str, Any]:
        """All at once: one reading instead of one for each name."""
        return self.read().items()

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            cls._packed,
            core_schema.union_schema([core_schema.is_instance_schema(cls), core_schema.dict_schema()]),
            serialization=core_schema.plain_serializer_function_ser_schema(
                cls.read, return_schema=core_schema.dict_schema()
            ),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: CoreSchema, _handler: Any) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": True}

    @classmethod
    def _packed(cls, value: WrittenFact | dict[str, Any]) -> WrittenFact:
        return value if isinstance(value, WrittenFact) else cls(to_json(value, ensure_ascii=True, inf_nan_mode="null"))
