"""Archives that were made to do harm, or damaged: each is refused in one line and writes nothing outside its folder."""

import hashlib
import io
import json
import random
import stat
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib

import pytest
from stepscope.archive import ArchiveError, Limits, opened

CELL = "results/box/timing/nano/ctx64/fp32"
NAME = "results/placeholder"  # replaced byte by byte, for names that zipfile does not write


def extra(*names, content=b"x"):
    """The sound members and these beside them."""
    return lambda members, pack: pack([*members.items(), *((name, content) for name in names)])


def of_kind(kind, content=b"/etc/passwd"):
    """With a member that says in its Unix mode that it is no plain file."""

    def make(members, pack):
        info = zipfile.ZipInfo("results/box/thing")
        info.create_system, info.external_attr = 3, (kind | 0o777) << 16
        return pack([*members.items(), (info, content)])

    return make


def renamed(raw):
    """With a member whose name is these bytes, in the directory and before its content."""

    def make(members, pack):
        path = pack([*members.items(), (NAME, b"x")])
        data = path.read_bytes()
        assert len(raw) == len(NAME) and data.count(NAME.encode()) == 2
        path.write_bytes(data.replace(NAME.encode(), raw))
        return path

    return make


def replaced(name, content):
    """With other content of a file, which the manifest agrees with."""
    return lambda members, pack: pack(members | {name: content})


def with_manifest(change):
    """With a manifest that is changed, or that is text or bytes of any kind."""

    def make(members, pack):
        def changed(sound):
            result = change(sound)
            return result if result is None or isinstance(result, str | bytes) else json.dumps(result)

        return pack(members, changed)

    return make


def first_file(**values):
    """With a manifest whose first entry is changed."""

    def change(sound):
        sound["files"][0].update(values)
        return sound

    return with_manifest(change)


def of_bytes(change):
    """A sound archive whose bytes are changed."""

    def make(members, pack):
        path = pack(members)
        path.write_bytes(change(path.read_bytes()))
        return path

    return make


def record(**values):
    """With a record that is changed, and listed as it is."""

    def make(members, pack):
        own = json.loads(members[f"{CELL}/record.json"]) | values
        return pack(members | {f"{CELL}/record.json": json.dumps(own).encode()})

    return make


def a_tar(members, pack):
    path = pack(members).with_suffix(".tar.gz")
    with tarfile.open(path, "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("../escaped"), io.BytesIO())
    return path


def in_the_directory(offset, layout, value, of=b"PK\1\2"):
    """With a field of the last entry of the directory, or of another structure, overwritten."""

    def change(data):
        start = data.rindex(of) + offset
        return data[:start] + struct.pack(layout, value) + data[start + struct.calcsize(layout) :]

    return of_bytes(change)


def swapped(data):
    """Other bytes of the same length in a file that is stored unpacked, its checksum put right."""
    at = data.index(b"cell\n")
    old, new = (struct.pack("<L", zlib.crc32(content)) for content in (b"cell\n", b"lies\n"))
    return (data[:at] + b"lies\n" + data[at + 5 :]).replace(old, new)


def within_itself(members, pack):
    inner = pack(members).read_bytes()
    return pack({"results/inner.zip": inner}, manifest=lambda sound: json.dumps(sound | {"files": []}))


HOSTILE = {
    # names
    "parent folder": (extra("../escaped"), "is no name"),
    "parent folder within": (extra("results/../../escaped"), "is no name"),
    "absolute": (extra("/tmp/stepscope-escaped"), "is no name"),
    "two slashes": (extra("results//x"), "is no name"),
    "here": (extra("results/./x"), "is no name"),
    "backslashes": (extra("results\\..\\..\\x"), "is no name"),
    "drive": (extra("C:/x"), "is no name"),
    "home": (extra("~/x"), "is no name"),
    "hidden": (extra("results/.bashrc"), "is no name"),
    "flag": (extra("results/-rf"), "is no name"),
    "blank": (extra("results/a b"), "is no name"),
    "variable": (extra("results/$HOME"), "is no name"),
    "command": (extra("results/`id`"), "is no name"),
    "HTML": (extra("results/<script>alert(1)"), "is no name"),
    "new line": (extra("results/a\nb"), "is no name"),
    "escape sequence": (extra("results/\x1b[2J"), "is no name"),
    "right to left": (extra("results/\u202egpj.exe"), "is no name"),
    "letters that look alike": (extra("results/t\u0430bles/x"), "is no name"),
    "ends with a dot": (extra("results/x."), "is no name"),
    "folder": (extra("results/folder/"), "is no name"),
    "no name": (renamed(b"results/plac\0holder"), "is no name"),
    "bytes that are no text": (renamed(b"results/plac\xffholder"), "is no name"),
    "elsewhere": (extra("scripts/stepscope/axes.py"), "is neither in results/"),
    "beside": (extra("sitecustomize.py"), "is neither in results/"),
    "long part": (extra("results/" + "a" * 201), "too long or too deep"),
    "long name": (extra("results/" + "/".join(["a" * 100] * 5)), "too long or too deep"),
    "deep": (extra("results/" + "/".join("a" * 30)), "too long or too deep"),
    "twice": (extra("results/x", "results/x"), "results/x is there twice"),
    "twice but for case": (extra("results/x", "results/X"), "results/X is there twice, once as results/x"),
    "file and folder": (extra("results/x", "results/x/y"), "results/x is a file and also the folder of results/x/y"),
    "case of a folder": (extra("results/x", "results/X/y"), "results/x is a file and also the folder"),
    # kinds
    "symbolic link": (of_kind(stat.S_IFLNK), "is a link, a device"),
    "device": (of_kind(stat.S_IFCHR), "is a link, a device"),
    "pipe": (of_kind(stat.S_IFIFO), "is a link, a device"),
    "encrypted": (in_the_directory(8, "<H", 1), "is encrypted"),
    "another packing": (lambda m, pack: pack(m, compression=zipfile.ZIP_LZMA), "another method than deflate"),
    # size
    "bomb": (extra("results/zeros", content=bytes(70 << 20)), "times its size, more than 200"),
    "huge by its directory": (in_the_directory(24, "<L", 0xFFFFFFF0), "GB, more than 1"),
    "many files": (extra(*(f"results/f{i}" for i in range(300))), "files, more than 200"),
    "directory of all": (in_the_directory(12, "<L", 0xFFFFFF, of=b"PK\5\6"), "its directory is larger"),
    "smaller than it says": (in_the_directory(24, "<L", 6), "has not the size that manifest.json says"),
    # damage
    "truncated": (of_bytes(lambda data: data[:-50]), "its end is missing"),
    "half": (of_bytes(lambda data: data[: len(data) // 2]), "its end is missing"),
    "empty": (of_bytes(lambda data: b""), "is no archive of results"),
    "a page": (of_bytes(lambda data: b"<!doctype html>" * 50), "is no archive of results"),
    "only an end": (of_bytes(lambda data: data[-22:]), "damaged"),
    "a comment behind it": (of_bytes(lambda data: data[:-2] + b"\5\0hello"), "is no archive of results"),
    "a tar": (a_tar, "is no archive of results"),
    "an archive in an archive": (within_itself, "'results/inner.zip' is not listed"),
    "noise in the packed bytes": (of_bytes(lambda data: data[:60] + b"\xff" * 40 + data[100:]), "damaged"),
    "bytes swapped": (
        lambda m, pack: of_bytes(swapped)(m, lambda members: pack(members, compression=zipfile.ZIP_STORED)),
        "results/tables/timing.csv is not the file",
    ),
    # manifest
    "no manifest": (with_manifest(lambda sound: None), "holds no manifest.json"),
    "manifest is no JSON": (with_manifest(lambda sound: "{"), "manifest.json is no JSON"),
    "manifest is bytes": (with_manifest(lambda sound: b"\xff\xfe\0"), "manifest.json is no JSON"),
    "manifest is nested": (with_manifest(lambda sound: "[" * 200_000), "nested too deeply"),
    "manifest has a huge number": (with_manifest(lambda sound: "1" * 10_000), "manifest.json is no JSON"),
    "manifest is a list": (with_manifest(lambda sound: []), "is not that of an archive"),
    "manifest of another program": (with_manifest(lambda sound: {"files": []}), "is not that of an archive"),
    "another version": (with_manifest(lambda sound: sound | {"version": 2}), "of version 2, this reads 1"),
    "version is a page": (with_manifest(lambda sound: sound | {"version": "<h1>\n"}), "of version '<h1>"),
    "files is text": (with_manifest(lambda sound: sound | {"files": "all"}), "no list of files"),
    "a path that is a number": (first_file(path=1), "no list of files"),
    "a digest that is none": (first_file(sha256="\x1b[2J"), "no list of files"),
    "a wrong digest": (first_file(sha256="0" * 64), "is not the file that manifest.json lists"),
    "a wrong size": (first_file(bytes=10**30), "has not the size"),
    "a file that is not listed": (
        with_manifest(lambda sound: sound | {"files": sound["files"][1:]}),
        "is not listed",
    ),
    "a file that is not there": (first_file(path="results/gone"), "'configuration.json' is not listed"),
    "a path outside that is listed": (first_file(path="../escaped"), "'../escaped' is not there"),
    "listed twice": (
        with_manifest(lambda sound: sound | {"files": sound["files"] + sound["files"][:1]}),
        "lists a file twice",
    ),
    # content
    "record is no JSON": (replaced(f"{CELL}/record.json", b"{"), "record.json is no JSON"),
    "record is nested": (replaced(f"{CELL}/record.json", b"[" * 200_000), "nested too deeply"),
    "record is a list": (replaced(f"{CELL}/record.json", b"[]"), "is no record of a cell"),
    "record's spec is text": (record(spec="x"), "is no record of a cell"),
    "samples of another record": (record(samples_sha256="0" * 64), "is not of the samples.csv"),
    "record is code": (replaced(f"{CELL}/record.json", b"__import__('os').system('id')"), "record.json is no JSON"),
    "configuration is a list": (replaced("configuration.json", b"[]"), "configuration.json is no configuration"),
}
SMALL = Limits(files=200, gigabytes=1)


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """The folder that archives are unpacked in."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_there_are_fifty_of_them():
    assert len(HOSTILE) >= 50


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("kind", HOSTILE)
def test_it_is_refused_in_one_line_and_writes_nothing(kind, members, pack, scratch, tmp_path):
    make, reason = HOSTILE[kind]
    path = make(members, pack)
    before = {each: each.stat().st_mtime_ns for each in tmp_path.parent.rglob("*") if each != scratch}
    with pytest.raises(ArchiveError) as error, opened(path, SMALL):
        pytest.fail("it was opened")
    line = str(error.value)
    assert reason in line
    assert line.startswith(f"{path}: ") and line.isprintable() and len(line) < 500
    assert list(scratch.iterdir()) == []
    assert {each: each.stat().st_mtime_ns for each in tmp_path.parent.rglob("*") if each != scratch} == before


def test_what_they_are_made_of_is_sound(members, pack, scratch):
    with opened(pack(members), SMALL) as folder:
        assert (folder / "tables/timing.csv").read_bytes() == b"cell\n"
        assert hashlib.sha256((folder.parent / "configuration.json").read_bytes()).hexdigest()
    assert list(scratch.iterdir()) == []


def test_a_limit_is_named_with_its_flag_and_can_be_raised(members, pack):
    path = pack([*members.items(), ("results/zeros", bytes(70 << 20))])
    with pytest.raises(ArchiveError, match="if you trust it, give a larger --most-ratio"), opened(path):
        pass
    with opened(path, Limits(ratio=10_000)) as folder:
        assert (folder / "zeros").stat().st_size == 70 << 20


def test_any_flipped_byte_is_refused_or_changes_nothing(members, pack, scratch):
    path, chance = pack(members), random.Random(5)
    data = path.read_bytes()
    with opened(path) as folder:
        sound = {file.relative_to(folder.parent): file.read_bytes() for file in folder.parent.rglob("*.*")}
    refused = 0
    for _ in range(150):
        at = chance.randrange(len(data))
        path.write_bytes(data[:at] + bytes([data[at] ^ chance.randrange(1, 256)]) + data[at + 1 :])
        try:
            with opened(path) as folder:
                found = {file.relative_to(folder.parent): file.read_bytes() for file in folder.parent.rglob("*.*")}
            assert found == sound
        except ArchiveError as error:
            refused += 1
            assert str(error).isprintable()
    assert refused > 75 and list(scratch.iterdir()) == []


def test_the_program_prints_one_line(members, pack, project_root):
    path = extra("../escaped")(members, pack)
    program = [sys.executable, str(project_root / "scripts/archive.py"), "check", str(path)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr == f"error: {path}: '../escaped' is no name that a file of results has\n"
