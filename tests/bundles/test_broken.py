"""A bundle that is damaged or forged is refused with a typed error, and nothing is written."""

import hashlib
import io
import random
import zipfile
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests import scale
from tests.bundles.kit import content, go, imported, recorded, shop, unzipped, zipped
from weft.errors import Corrupt
from weft.runtime.bundles.format import SUMS, BundledDefinition, Manifest, manifest_of
from weft.stores.memory import MemoryStore

pytestmark = scale.MARKS
BROKEN = scale.scaled(60, 1_000)


@pytest.fixture(scope="module")
def bundle() -> bytes:
    return go(recorded(shop(), 7))


def refused(data: bytes) -> Corrupt:
    """Import it, and see that nothing was written."""
    store = MemoryStore()
    before = content(store)
    with pytest.raises(Corrupt) as error:
        go(imported(store, data))
    assert content(store) == before
    assert error.value.code == "bundle.corrupt"
    return error.value


def changed(bundle: bytes, **fields: Any) -> bytes:
    """The bundle with another manifest."""
    files = unzipped(bundle)
    manifest = msgspec.structs.replace(manifest_of(files["manifest.json"]), **fields)
    return zipped({**files, "manifest.json": msgspec.json.encode(manifest)})


def manifest(bundle: bytes) -> Manifest:
    return manifest_of(unzipped(bundle)["manifest.json"])


def with_entry(bundle: bytes, name: str, data: bytes = b"x", **attributes: Any) -> bytes:
    """The bundle with one more entry in its zip."""
    out = io.BytesIO(bundle)
    entry = zipfile.ZipInfo(name)
    for key, value in attributes.items():
        setattr(entry, key, value)
    with zipfile.ZipFile(out, "a") as archive:
        archive.writestr(entry, data)
    return out.getvalue()


@pytest.mark.parametrize(
    "name",
    ["/etc/passwd", "../x", "runs/../../x", "runs\\..\\x", "C:/x", "blobs/", "x" * 70_000, "runs/a/b.jsonl", "~/x", ""],
)
def test_no_entry_has_a_name_of_its_own(bundle: bytes, name: str) -> None:
    assert "no entry of that name" in refused(with_entry(bundle, name[:60_000])).message


def test_a_link_is_no_file(bundle: bytes) -> None:
    assert "plain file" in refused(with_entry(bundle, f"blobs/{'0' * 64}", external_attr=0o120777 << 16)).message


def test_an_entry_is_there_once(bundle: bytes) -> None:
    with pytest.warns(UserWarning, match="Duplicate"):
        twice = with_entry(bundle, "manifest.json", b"{}")
    assert refused(twice).context["entry"] == "manifest.json"


def test_bombs(bundle: bytes) -> None:
    bomb = io.BytesIO(bundle)
    with zipfile.ZipFile(bomb, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"blobs/{'1' * 64}", b"\0" * 20_000_000)
    unlisted = refused(bomb.getvalue())
    assert unlisted.context["entry"] == f"blobs/{'1' * 64}"
    lie = bomb.getvalue()
    directory = lie.rindex(b"PK\x01\x02")
    # The directory says that the entry is huge.
    huge = lie[: directory + 24] + (2**31).to_bytes(4, "little") + lie[directory + 28 :]
    assert "would unpack to" in refused(huge).message
    # The directory says that the entry is small.
    small = lie[: directory + 24] + (10).to_bytes(4, "little") + lie[directory + 28 :]
    refused(small)


def test_deep_json(bundle: bytes) -> None:
    files = unzipped(bundle)
    deep = b'{"weft":"bundle/1","x":' + b"[" * 5_000 + b"]" * 5_000 + b"}"
    assert refused(zipped({**files, "manifest.json": deep})).context["entry"] == "manifest.json"
    less = b'{"weft":"bundle/1","x":' + b"[" * 400 + b"]" * 400 + b"}"
    assert "nested deeper" in refused(zipped({**files, "manifest.json": less})).message


def test_formats_that_are_not_known(bundle: bytes) -> None:
    assert "'bundle/9'" in refused(changed(bundle, weft="bundle/9")).message
    runs = manifest(bundle).runs
    newer = [msgspec.structs.replace(runs[0], format=99), *runs[1:]]
    assert "needs a newer Weft" in refused(changed(bundle, runs=newer)).message


def _cut_event(line: dict[str, Any]) -> None:
    line["event"]["kind"] = "unheard_of"


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "no manifest": lambda one: zipped({k: v for k, v in unzipped(one).items() if k != "manifest.json"}),
    "no sums": lambda one: _rezipped({k: v for k, v in unzipped(one).items() if k != SUMS}),
    "wrong sum": lambda one: _rezipped({**unzipped(one), SUMS: unzipped(one)[SUMS].replace(b"a", b"b")}),
    "no root": lambda one: changed(one, root="nobody"),
    "a circle": lambda one: changed(one, runs=_circle(one)),
    "a foreign child": lambda one: changed(one, runs=[*manifest(one).runs[:1], _orphan(one)]),
    "no log": lambda one: zipped({k: v for k, v in unzipped(one).items() if not k.startswith("runs/")}),
    "no blob": lambda one: changed(
        _without(one, "blobs/"),
        blobs=[],
    ),
    "other blob": lambda one: zipped({k: v + b" " if k.startswith("blobs/") else v for k, v in unzipped(one).items()}),
    "not zip": lambda _one: b"PK\x03\x04 and nothing more",
    "empty": lambda _one: b"",
    "an uid that is a path": lambda one: changed(
        one, runs=[msgspec.structs.replace(run, uid=f"../{run.uid}") for run in manifest(one).runs]
    ),
    "an id with a newline": lambda one: changed(
        one, runs=[msgspec.structs.replace(run, id="a\nb") for run in manifest(one).runs]
    ),
    "a definition that is none": lambda one: _with_definition(one, b"{}"),
}


def _without(bundle: bytes, prefix: str) -> bytes:
    return zipped({name: data for name, data in unzipped(bundle).items() if not name.startswith(prefix)})


def _rezipped(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def _circle(bundle: bytes) -> list[Any]:
    runs = manifest(bundle).runs
    return [runs[0], msgspec.structs.replace(runs[1], parent=runs[1].uid)]


def _orphan(bundle: bytes) -> Any:
    return msgspec.structs.replace(manifest(bundle).runs[1], parent="nobody")


def _with_definition(bundle: bytes, body: bytes) -> bytes:
    named = {"name": "order", "version": "0"}
    text = msgspec.json.encode(
        {
            **named,
            "style": "graph",
            "origin": "hosted",
            "created_at": 1,
            "body": msgspec.Raw(body),
        }
    )
    listed = changed(bundle, definitions=[BundledDefinition(**named)])
    return zipped({**unzipped(listed), "definitions/order@0.json": text})


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_not_as_it_says_is_refused(bundle: bytes, change: str) -> None:
    refused(CHANGES[change](bundle))


def test_a_forged_event_is_refused(bundle: bytes) -> None:
    """Even with checksums that fit."""
    files, about = unzipped(bundle), manifest(bundle)
    name = f"runs/{about.root}.jsonl"
    lines = files[name].splitlines()
    first = msgspec.json.decode(lines[0])
    _cut_event(first)
    log = b"".join(line + b"\n" for line in [msgspec.json.encode(first), *lines[1:]])
    run = msgspec.structs.replace(about.runs[0], digest=hashlib.sha256(log).hexdigest())
    forged = zipped(
        {
            **files,
            name: log,
            "manifest.json": msgspec.json.encode(msgspec.structs.replace(about, runs=[run, *about.runs[1:]])),
        }
    )
    assert refused(forged).context["entry"] == name


def test_any_damage(bundle: bytes) -> None:
    """A flipped, lost or doubled byte anywhere: refused, or it was no byte that says anything."""
    good = MemoryStore()
    go(imported(good, bundle))
    sound, refusals = content(good), 0
    for seed in range(BROKEN):
        chance = random.Random(seed)
        place = chance.randrange(len(bundle))
        data = bytearray(bundle)
        match seed % 4:
            case 0:
                data[place] ^= 1 << chance.randrange(8)
            case 1:
                del data[place]
            case 2:
                del data[place:]
            case _:
                data[place:place] = bundle[place : place + chance.randrange(1, 200)]
        store = MemoryStore()
        try:
            go(imported(store, bytes(data)))
        except Corrupt:
            assert content(store) == content(MemoryStore()), seed
            refusals += 1
        else:
            assert content(store) == sound, seed
    assert refusals > BROKEN * 0.9
