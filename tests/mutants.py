"""Mutants of a source file: small mistakes, one at a time, that tests should notice."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "/",
    ast.Mod: "*",
    ast.Pow: "*",
    ast.BitAnd: "|",
    ast.BitOr: "&",
}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "maximum": "minimum", "minimum": "maximum"}


@dataclass(frozen=True)
class Mutant:
    """One changed piece of a file: the characters from `start` to `end` become `replacement`."""

    file: Path
    line: int
    start: int
    end: int
    replacement: str

    def apply(self, source: str) -> str:
        """The source with the mistake."""
        return source[: self.start] + self.replacement + source[self.end :]

    def lines(self, source: str) -> tuple[str, str]:
        """The line before and after, without indentation."""
        first = source.rfind("\n", 0, self.start) + 1
        last = source.find("\n", self.end)
        last = len(source) if last < 0 else last
        changed = source[first : self.start] + self.replacement + source[self.end : last]
        return " ".join(source[first:last].split()), " ".join(changed.split())


def mutants(file: Path) -> list[Mutant]:
    """All mutants of a file, in the order of its text; none of annotations, messages and docstrings."""
    source = file.read_text("utf-8")
    found = [Mutant(file, *piece) for piece in _Mutator(source).pieces()]
    return sorted(found, key=lambda mutant: (mutant.start, mutant.end, mutant.replacement))


class _Mutator:
    def __init__(self, source: str) -> None:
        self.source = source
        self.tree = ast.parse(source)
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def pieces(self) -> Iterator[tuple[int, int, int, str]]:
        """Line, start, end and replacement of every mutant."""
        for node in _executed(self.tree):
            for first, last, replacement in self._replacements(node):
                line = getattr(node, "lineno", 1)
                yield line, first, last, replacement

    def _replacements(self, node: ast.AST) -> Iterator[tuple[int, int, str]]:
        match node:
            case ast.Compare(ops=[op], comparators=[right]):
                yield *self._between(node.left, right), f" {COMPARISONS[type(op)]} "
            case ast.BinOp() if type(node.op) in OPERATORS and not _is_text(node):
                yield *self._between(node.left, node.right), f" {OPERATORS[type(node.op)]} "
            case ast.BoolOp(values=[first, second, *_]):
                yield *self._between(first, second), " or " if isinstance(node.op, ast.And) else " and "
            case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
                yield *self._span(node), self._text(operand)
            case ast.Constant(value=bool() as value):
                yield *self._span(node), str(not value)
            case ast.Constant(value=int() as value):
                yield *self._span(node), str(value + 1)
            case ast.Constant(value=float() as value):
                yield *self._span(node), repr(2 * value if value else 1.0)
            case ast.If() | ast.IfExp() | ast.While():
                yield *self._span(node.test), f"(not ({self._text(node.test)}))"
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in NAMES:
                end = self._span(node.func)[1]
                yield end - len(name), end, NAMES[name]
            case ast.Expr(value=ast.Call()) | ast.AugAssign():
                yield *self._span(node), "pass"
            case _:
                return

    def _span(self, node: ast.AST) -> tuple[int, int]:
        line, column = node.lineno, node.col_offset  # pyright: ignore[reportAttributeAccessIssue]
        end_line, end_column = node.end_lineno, node.end_col_offset  # pyright: ignore[reportAttributeAccessIssue]
        return self._offset(line, column), self._offset(end_line, end_column)

    def _offset(self, line: int, column: int) -> int:
        start = self.starts[line - 1]
        prefix = self.source[start : self.starts[line]].encode()[:column]
        return start + len(prefix.decode())

    def _text(self, node: ast.AST) -> str:
        first, last = self._span(node)
        return self.source[first:last]

    def _between(self, left: ast.AST, right: ast.AST) -> tuple[int, int]:
        """The operator between two operands, without brackets around them."""
        first, last = self._span(left)[1], self._span(right)[0]
        while self.source[first:last].lstrip().startswith(")"):
            first = self.source.index(")", first) + 1
        while self.source[first:last].rstrip().endswith("("):
            last = self.source.rindex("(", first, last)
        return first, last


def _executed(tree: ast.Module) -> Iterator[ast.AST]:
    """All nodes that compute something: no annotations, docstrings, messages, assertions or imports for types."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        yield node
        for name, value in ast.iter_fields(node):
            if name in {"annotation", "returns", "decorator_list", "bases", "type_params"}:
                continue
            children = value if isinstance(value, list) else [value]
            pending.extend(child for child in children if isinstance(child, ast.AST) and not _is_skipped(child))


def _is_skipped(node: ast.AST) -> bool:
    match node:
        case ast.JoinedStr() | ast.Raise() | ast.Assert() | ast.Import() | ast.ImportFrom():
            return True
        case ast.keyword(arg="strict"):  # of `zip`: an assertion
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Assign(targets=[ast.Name(id="__slots__" | "__all__")]):
            return True
        case ast.Call(func=ast.Name(id="Refusal" | "field" | "Field" | "TypeVar" | "cast")):
            return True
        case _:
            return False


def _is_text(node: ast.BinOp) -> bool:
    """Whether this joins texts or types, not numbers."""
    return any(
        isinstance(part, ast.JoinedStr) or (isinstance(part, ast.Constant) and isinstance(part.value, str | None))
        for part in (node.left, node.right)
    )
