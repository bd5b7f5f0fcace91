"""Any chat model in a GGUF file: by its path, or by its name on the hub, which a local server stands for."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import AsyncExitStack
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from glyphoxa.adapters.local.llama import LlamaServer, measure, read_header
from glyphoxa.adapters.weights.download import ModelHub
from glyphoxa.adapters.weights.store import WeightStore
from glyphoxa.app.models import load_llama
from glyphoxa.chat.dialect import dialect_of
from glyphoxa.cli.main import main
from glyphoxa.config.check import check
from glyphoxa.config.located_yaml import InvalidFile
from glyphoxa.config.settings import read_settings
from glyphoxa.domain.errors import Corrupt, InvalidInput, NotFound, Unavailable
from tests.support.gguf import TEMPLATE, chat_model
from tests.support.hub_server import HubServer, Refusal, begin_file, begins_at, login_page, send, status
from tests.support.patience import DEADLINE_S

REPO = "somebody/Chatty-1B-Instruct-GGUF"
NAME = f"{REPO}/chatty-Q4_K_M.gguf"
TEMPLATES = Path(__file__).parent.parent / "data" / "chat_templates"
"""Shortened templates of publishers; `one-system` and `user-last` belong to no model."""
PERSONA, ONE, TWO, ANSWER = ("system", "Be."), ("user", "Hm."), ("user", "Who?"), ("assistant", "I.")
RAIN, LATE = ("system", "It rains."), ("system", "It is late.")
CHATS = {
    "alternating": [PERSONA, ONE, ANSWER, TWO],
    "two players in a row": [PERSONA, ONE, ANSWER, ("user", "Ah."), TWO],
    "two answers in a row": [PERSONA, ONE, ANSWER, ("assistant", "Aye."), TWO],
    "begins with an answer": [PERSONA, ANSWER, TWO],
    "system in the middle": [PERSONA, ONE, ANSWER, RAIN, TWO],
    "system at the end": [PERSONA, ONE, ANSWER, TWO, LATE],
    "system twice at the start": [PERSONA, RAIN, TWO],
    "system everywhere": [PERSONA, RAIN, ONE, LATE, ANSWER, ("system", "Hush."), TWO],
    "no system": [ONE, ANSWER, TWO],
}


class Hub(HubServer):
    """Speaks the hub's protocol: declares a repository's files, and gives their bytes through a redirect, in ranges.

    Attributes:
        files: Contents by repository and path.
        gated: Only for users with this token.
        refuse: Answers every request, if set.
        asked: Paths, in order.
        tokens: The token of each request for bytes after the redirect.
        cut_after: The next answers break off after so many bytes.
    """

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, dict[str, bytes]] = {}
        self.gated = ""
        self.refuse: Refusal | None = None
        self.asked: list[str] = []
        self.tokens: list[str | None] = []
        self.cut_after: list[int] = []

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        path = urlsplit(request.path).path
        self.asked.append(path)
        if self.refuse is not None:
            self.refuse(request)
            return
        declared = re.fullmatch(r"/api/models/([^/]+/[^/]+)/revision/main", path)
        wanted = re.fullmatch(r"/([^/]+/[^/]+)/(resolve|bytes)/main/(.+)", path)
        found = declared or wanted
        assert found, path
        repo, token = found[1], request.headers.get("Authorization")
        if repo not in self.files:
            request.send_error(404)
        elif wanted and wanted[2] == "bytes":
            self.tokens.append(token)
            self._send_bytes(request, self.files[repo][wanted[3]])
        elif self.gated and token != f"Bearer {self.gated}":
            request.send_error(401)
        elif declared:
            self._declare(request, repo)
        else:
            request.send_response(302)
            # As the hub's, on another host: a token that was sent there would be somebody else's to keep.
            elsewhere = self.address.replace("127.0.0.1", "localhost")
            request.send_header("Location", elsewhere + path.replace("/resolve/", "/bytes/"))
            request.end_headers()

    def _declare(self, request: BaseHTTPRequestHandler, repo: str) -> None:
        """Answer `?blobs=true`: the hashes of large files are in the list of all."""
        files: list[dict[str, object]] = [{"rfilename": "README.md", "size": 12, "blobId": "1" * 40}]
        for name, content in self.files[repo].items():
            lfs = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}
            files.append({"rfilename": name, "size": len(content), "blobId": "2" * 40, "lfs": lfs})
        send(request, json.dumps({"id": repo, "siblings": files}).encode(), kind="application/json")

    def _send_bytes(self, request: BaseHTTPRequestHandler, content: bytes) -> None:
        start = begins_at(request)
        begin_file(request, len(content), start=start)
        end = start + self.cut_after.pop(0) if self.cut_after else len(content)
        request.wfile.write(content[start:end])


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.delenv("GLYPHOXA_MODELS", raising=False)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    with Hub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        yield hub


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return chat_model(tmp_path / "mine.gguf")


def weights(tmp_path: Path) -> WeightStore:
    return WeightStore(tmp_path / "cache", pins=tmp_path / "data" / "models.json")


def settings_with(tmp_path: Path, model: str, more: str = "") -> Path:
    file = tmp_path / "settings.yaml"
    llm = f"providers: {{llm: {{name: local, model: '{model}'{more}}}}}\n"
    file.write_text(f"data_dir: data\nmodels: {{dir: cache}}\n{llm}", "utf-8")
    return file


def test_a_model_of_the_hub_is_pinned_as_the_hub_declares_it_and_not_asked_for_again(
    hub: Hub, model: Path, tmp_path: Path
) -> None:
    hub.files[REPO] = {"other.gguf": b"GGUF...", "more/deep.gguf": b"GGUF", "chatty-Q4_K_M.gguf": model.read_bytes()}
    hub.cut_after = [50_000]
    found = weights(tmp_path).ensure([NAME])[NAME]
    assert found.read_bytes() == model.read_bytes()
    # It went on where the line broke, and nothing else is asked of the hub.
    assert hub.asked == [
        f"/api/models/{REPO}/revision/main",
        *[f"/{REPO}/{way}/main/chatty-Q4_K_M.gguf" for way in ("resolve", "bytes")] * 2,
    ]
    pinned = json.loads((tmp_path / "data" / "models.json").read_text("utf-8"))
    assert pinned[NAME]["sha256"] == hashlib.sha256(model.read_bytes()).hexdigest()
    hub.asked.clear()
    again = weights(tmp_path)
    assert again.ensure([NAME]) == {NAME: found}
    assert (again.find(NAME).path, again.find(NAME).sha256) == (found, pinned[NAME]["sha256"])
    assert hub.asked == []


def test_another_file_under_a_pinned_name_is_refused_until_it_is_asked_for(
    hub: Hub, model: Path, tmp_path: Path
) -> None:
    hub.files[REPO] = {"chatty-Q4_K_M.gguf": model.read_bytes()}
    found = weights(tmp_path).ensure([NAME])[NAME]
    found.unlink()
    hub.files[REPO]["chatty-Q4_K_M.gguf"] = other = model.read_bytes() + b"!"
    with pytest.raises(Corrupt, match=r"the file on the hub has changed.*models fetch --refetch somebody/Chatty"):
        weights(tmp_path).ensure([NAME])
    assert weights(tmp_path).ensure([NAME], refetch=True)[NAME].read_bytes() == other


def test_a_name_that_the_hub_has_not_is_said_with_what_there_is(hub: Hub, tmp_path: Path) -> None:
    hub.files[REPO] = {"chatty-Q4_K_M.gguf": b"GGUF"}
    with pytest.raises(NotFound, match=r"has no file 'chatty-Q4_K.gguf'; did you mean 'chatty-Q4_K_M.gguf'"):
        weights(tmp_path).ensure([f"{REPO}/chatty-Q4_K.gguf"])
    with pytest.raises(NotFound, match="no model repository 'nobody/nothing'"):
        weights(tmp_path).ensure(["nobody/nothing/x.gguf"])
    with pytest.raises(NotFound, match=f"fetch it with `glyphoxa models fetch {NAME}`"):
        weights(tmp_path).find(NAME)


def test_a_gated_model_needs_a_token_which_only_the_hub_itself_is_told(
    hub: Hub, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.files[REPO] = {"chatty-Q4_K_M.gguf": model.read_bytes()}
    hub.gated = "hf_secret"
    with pytest.raises(Unavailable, match=r"HTTP 401.*is private or gated.*HF_TOKEN"):
        weights(tmp_path).ensure([NAME])
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    weights(tmp_path).ensure([NAME])
    assert hub.tokens == [None]


@pytest.mark.parametrize(
    ("refuse", "error", "reason"),
    [
        (login_page, Corrupt, "does not respond like a model hub"),
        (lambda request: send(request, b"[]"), Corrupt, "does not respond like a model hub"),
        (status(503), Unavailable, "HTTP 503 Service Unavailable"),
    ],
    ids=["login page", "another service", "503"],
)
def test_hub_that_declares_nothing_is_named_with_the_reason(
    hub: Hub, tmp_path: Path, refuse: Refusal, error: type[Exception], reason: str
) -> None:
    hub.refuse = refuse
    with pytest.raises(error, match=f"{NAME}.*{reason}"):
        weights(tmp_path).ensure([NAME])


def test_a_hub_that_is_away_is_said(model: Path, tmp_path: Path) -> None:
    away = WeightStore(tmp_path / "cache", pins=tmp_path / "data" / "models.json", hub=ModelHub("http://127.0.0.1:9"))
    with pytest.raises(Unavailable, match=f"{NAME}: the hub cannot be reached"):
        away.ensure([NAME])


def test_the_command_fetches_lists_and_verifies_a_model_of_the_hub(
    hub: Hub, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.files[REPO] = {"chatty-Q4_K_M.gguf": model.read_bytes()}
    config = ["--config", str(settings_with(tmp_path, NAME))]
    assert main(["models", "fetch", *config, NAME]) == 0
    assert main(["models", "verify", *config, NAME]) == 0
    assert main(["models", "list", *config]) == 0
    told = capsys.readouterr()
    assert f"{NAME}: chatty-Q4_K_M.gguf is correct" in told.out
    assert NAME in told.out.partition("artefact")[2]
    assert main(["models", "fetch", *config, "nobody/nothing/x.gguf"]) != 0
    assert "Traceback" not in capsys.readouterr().err


async def test_the_settings_name_a_model_by_path_or_by_its_name_on_the_hub(
    hub: Hub, model: Path, tmp_path: Path
) -> None:
    content = await asyncio.to_thread(model.read_bytes)
    hub.files[REPO] = {"chatty-Q4_K_M.gguf": content}
    await asyncio.to_thread(weights(tmp_path).ensure, [NAME])
    for named in ("./mine.gguf", str(model), NAME):
        settings = read_settings(settings_with(tmp_path, named))
        found = {one.subject: one for one in check(settings, environ={})}["llm"]
        assert (found.level, found.text.endswith("profile small")) == ("ok", True)
        async with AsyncExitStack() as stack:
            llama = await load_llama(settings, stack)
            assert llama.model_id == hashlib.sha256(content).hexdigest()
            assert await rendered(llama, [("system", "Be."), ("user", "Hm."), ("user", "Who?")]) == (
                "[system] Be.\n[user] Hm.\n[user] Who?\n[assistant] "
            )


@pytest.mark.parametrize("template", [each.stem for each in sorted(TEMPLATES.glob("*.jinja"))])
async def test_every_template_shows_each_message_once(tmp_path: Path, template: str) -> None:
    text = await asyncio.to_thread((TEMPLATES / f"{template}.jinja").read_text, "utf-8")
    async with LlamaServer(model_path=chat_model(tmp_path / "m.gguf", template=text)) as llama:
        for name, talk in CHATS.items():
            prompt = await rendered(llama, talk)
            assert [prompt.count(content) for _, content in talk] == [1] * len(talk), (name, prompt)


@pytest.mark.parametrize(
    ("template", "chat", "prompt"),
    [
        (
            "gemma-2",
            "system in the middle",
            "<start_of_turn>user\nBe.\nHm.<end_of_turn>\n<start_of_turn>model\nI.<end_of_turn>\n"
            "<start_of_turn>user\nIt rains.\n\nWho?<end_of_turn>\n<start_of_turn>model\n",
        ),
        (
            "gemma-3",
            "begins with an answer",
            "<start_of_turn>user\nBe.\n\n…<end_of_turn>\n<start_of_turn>model\nI.<end_of_turn>\n"
            "<start_of_turn>user\nWho?<end_of_turn>\n<start_of_turn>model\n",
        ),
        ("mistral-v0.2", "two players in a row", "[INST] Be.\nHm. [/INST]I.<|end|>[INST] Ah.\n\nWho? [/INST]"),
        ("mistral-v0.3", "system at the end", "[INST] Hm.[/INST] I.<|end|>[INST] Be.\n\nWho?\n\nIt is late.[/INST]"),
    ],
)
async def test_strict_template_is_given_turns_that_alternate(
    tmp_path: Path, template: str, chat: str, prompt: str
) -> None:
    text = await asyncio.to_thread((TEMPLATES / f"{template}.jinja").read_text, "utf-8")
    async with LlamaServer(model_path=chat_model(tmp_path / "m.gguf", template=text)) as llama:
        assert (await rendered(llama, CHATS[chat])).removeprefix("<|end|>") == prompt


async def test_template_that_leaves_out_what_is_said_is_refused(tmp_path: Path) -> None:
    deaf = chat_model(tmp_path / "deaf.gguf", template="{% for m in messages %}{{ m.text }}{% endfor %}")
    with pytest.raises(InvalidInput, match=r"deaf\.gguf: its chat template .*: it leaves out 'You are Mira\.'"):
        LlamaServer(model_path=deaf).load()


async def rendered(llama: LlamaServer, talk: list[tuple[str, str]]) -> str:
    messages = [{"role": role, "content": content} for role, content in talk]
    dialect = dialect_of("local", habits=llama.connection.habits)
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {llama.api_key}"}) as client:
        answer = await client.post(
            f"{llama.base_url.removesuffix('/v1')}/apply-template", json=dialect.fitted({"messages": messages})
        )
    return str(answer.json()["prompt"])


async def test_what_cannot_be_talked_to_is_said_before_the_table_opens(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"base\.gguf: has no chat template"):
        LlamaServer(model_path=chat_model(tmp_path / "base.gguf", template="")).load()
    short = chat_model(tmp_path / "short.gguf", context_length=512)
    with pytest.raises(InvalidInput, match=r"short\.gguf: its context is 512 tokens, but 2,048 are set"):
        LlamaServer(model_path=short).load()
    with pytest.raises(NotFound, match=r"nowhere\.gguf: no such model file"):
        weights(tmp_path).find(str(tmp_path / "nowhere.gguf"))


def test_a_header_tells_context_and_template(model: Path) -> None:
    header = read_header(model)
    assert (header.context_length, header.chat_template) == (4_096, TEMPLATE.strip())


def test_measuring_tells_the_size_of_the_model(model: Path) -> None:
    measured = measure(model, deadline_s=DEADLINE_S)
    assert 20_000 < measured.billions * 1e9 < 30_000
    assert measured.bytes == model.stat().st_size


def test_the_command_measures_the_model_that_is_here_and_recommends(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = settings_with(tmp_path, "./mine.gguf")
    assert main(["models", "recommend", "--config", str(config), "--npcs", "2"]) == 0
    told = capsys.readouterr()
    assert re.search(r"mine\.gguf reads \d+ tokens per second here and generates \d+\..*for 2 NPCs", told.out)
    assert "Mistral-7B-Instruct-v0.3-Q4_K_M.gguf" in told.out
    model.unlink()
    assert main(["models", "recommend", "--config", str(config)]) != 0
    assert "no language model is installed to measure with" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("mine.bin", "'mine.bin' is not a GGUF file; valid: a path"),
        ("a/b/big-00001-of-00003.gguf", "is one part of a split model"),
    ],
)
def test_a_name_that_cannot_be_one_is_an_error_at_its_line(tmp_path: Path, model: str, why: str) -> None:
    with pytest.raises(InvalidFile, match=rf"settings\.yaml:3: providers\.llm\.model .*{re.escape(why)}"):
        read_settings(settings_with(tmp_path, model))
