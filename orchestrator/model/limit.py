"""The numbers and words that judgements compare with, each with the origin that a playbook gives it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import BaseModel, ConfigDict


class Limit(BaseModel):
    """One limit: its value and where that value comes from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: bool | int | float | str | tuple[str, ...]
    origin: str


class Limits(Mapping[str, Limit]):
    """An agent's limits by name, as its playbook sets them."""

    __slots__ = ("_by_name",)

    def __init__(self, by_name: Mapping[str, Limit]) -> None:
        self._by_name = dict(by_name)

    def __getitem__(self, name: str) -> Limit:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def number(self, name: str) -> float:
        """A limit that is a number.

        Raises:
            TypeError: it is not one; playbooks are checked against the agent's declaration before that.
        """
        value = self._by_name[name].value
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"limit {name} is not a number: {value!r}")
        return value

    def words(self, name: str) -> tuple[str, ...]:
        """A limit that is a list of words; a single word counts as a list of one.

        Raises:
            TypeError: it is neither.
        """
        value = self._by_name[name].value
        if isinstance(value, str):
            return (value,)
        if not isinstance(value, tuple):
            raise TypeError(f"limit {name} is not a list of words: {value!r}")
        return value
