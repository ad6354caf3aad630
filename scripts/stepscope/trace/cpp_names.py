"""Names of C++ functions as kernels have them: template arguments, data types, identifiers in
words."""

import hashlib
import re
from typing import NamedTuple

TYPES = {
    "float": "fp32",
    "double": "fp64",
    "Half": "fp16",
    "__half": "fp16",
    "half": "fp16",
    "half_t": "fp16",
    "BFloat16": "bf16",
    "__nv_bfloat16": "bf16",
    "nv_bfloat16": "bf16",
    "bfloat16_t": "bf16",
    "tfloat32_t": "tf32",
    "Float8_e4m3fn": "fp8",
    "Float8_e5m2": "fp8",
    "__nv_fp8_e4m3": "fp8",
    "__nv_fp8_e5m2": "fp8",
    "float_e4m3_t": "fp8",
    "float_e5m2_t": "fp8",
    "signed char": "int8",
    "int8_t": "int8",
    "unsigned char": "uint8",
    "uint8_t": "uint8",
    "short": "int16",
    "int": "int32",
    "unsigned int": "uint32",
    "long": "int64",
    "long long": "int64",
    "unsigned long": "uint64",
    "unsigned long long": "uint64",
    "bool": "bool",
    # as libraries of products abbreviate them inside names
    "f32": "fp32",
    "tf32": "tf32",
    "f16": "fp16",
    "fp16": "fp16",
    "bf16": "bf16",
    "f64": "fp64",
    "s8": "int8",
    "i8": "int8",
    "u8": "int8",
    "e4m3": "fp8",
    "e5m2": "fp8",
}
# Words of a function's name that say nothing.
_EMPTY_WORDS = ("kernel", "cuda", "impl", "functor", "ops", "launch")


class Function(NamedTuple):
    """A function, or a type, by its own name, and the arguments of its template."""

    base: str
    arguments: list[str]

    def at(self, place: int) -> str:
        """One of the arguments; "" where there are fewer."""
        return self.arguments[place] if place < len(self.arguments) else ""

    @property
    def types(self) -> list[str]:
        """The data types among the arguments."""
        return [found for found in map(data_type_of, self.arguments) if found]

    @property
    def numbers(self) -> list[str]:
        """The numbers among the arguments."""
        return [argument for argument in self.arguments if argument.isdigit()]


# What different writers of names spell in different ways → one of them.
_SPELLINGS = (
    (r"(<unnamed>|\(anonymous namespace\)|\{anonymous\}|_GLOBAL__N_\w*)::", ""),
    (r"\((unsigned |long )*[\w:]+\)(?=-?\d)", ""),  # casts before numbers
    (r"\b(\d+)u?l{0,2}\b", r"\1"),
    (r"^(typename )?std::enable_if<[^<>]*>::type ", ""),
    (r"\[lambda(\([^()]*\)) \(instance (\d+)\)\]", r"{lambda\1#\2}"),
    (r"\btrue\b", "1"),
    (r"\bfalse\b", "0"),
    (r"> (?=>)", ">"),
    (r"operator \(\)", "operator()"),
    (r"^void ", ""),
)


def one_spelling(full: str) -> str:
    """The name in one spelling: no casts before numbers, no unnamed namespaces,
    `{lambda(float)#1}`, 1 for true."""
    name = " ".join(full.split())
    for pattern, spelling in _SPELLINGS:
        name = re.sub(pattern, spelling, name)
    return name


def digits(text: str) -> str:
    """Four digits that stand for a text, white space aside."""
    return "#" + hashlib.sha256("".join(text.split()).encode(errors="replace")).hexdigest()[:4]


def parts_of(text: str) -> Function:
    """`ns::name<a, b<c>>(...)` as "name" with the arguments "a" and "b<c>"."""
    text = text.strip().removeprefix("void ")
    head = re.match(r"[\w:~$]+", text)
    if not head:
        return Function(text, [])
    base = head[0].rstrip(":").rsplit("::", 1)[-1]
    is_template = text.startswith("<", head.end())
    return Function(base, template_arguments(text, head.end()) if is_template else [])


def template_arguments(text: str, start: int) -> list[str]:
    """The template arguments of the `<` at this place, split at the commas that are not inside
    further brackets."""
    arguments = []
    depth = 0
    begin = start + 1
    for place in range(start, len(text)):
        character = text[place]
        if character in "<([{":
            depth += 1
        elif character in ")]}" or (character == ">" and text[place - 1] != "-"):
            depth -= 1
        if depth == 0 or (depth == 1 and character == ","):
            arguments.append(text[begin:place].strip())
            begin = place + 1
        if depth == 0:
            return arguments
    return [*arguments, text[begin:].strip()]


def data_type_of(text: str) -> str:
    """A C++ type in the project's words: "c10::BFloat16" is "bf16", "OpaqueType<2>" "2-byte"; ""
    for others."""
    text = re.sub(r"^const |( const)?( ?[*&])*$", "", text.strip())
    if opaque := re.search(r"OpaqueType<(\d+)>$", text):
        return f"{opaque[1]}-byte"
    if text.startswith("c10::complex<") or text.startswith("thrust::complex<"):
        return "complex64" if "float" in text else "complex128"
    return TYPES.get(text.rsplit("::", 1)[-1], "") if "<" not in text else ""


def words_of(identifier: str) -> str:
    """`GammaBetaBackwardKernel` as "gamma beta backward": in lower case, without words that say
    nothing ("kernel")."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_", " ", identifier)
    kept = [word for word in spaced.lower().split() if word not in _EMPTY_WORDS]
    return " ".join(kept).replace("soft max", "softmax") or identifier
