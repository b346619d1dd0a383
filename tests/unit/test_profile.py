"""Profiles and ``homer.toml``: what they mean, and one line that says where they are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import HomerError, NotFound, SetupError
from domain.settings import Settings
from models.profile import Profile, load_profile
from models.specs import ChatSpec, Price, bundled_profiles, cost_usd
from models.weights import load_manifest


@pytest.fixture(autouse=True)
def _no_profile_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOMER_PROFILE", raising=False)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "homer.toml"


def test_without_a_word_it_is_local_with_the_papers_settings() -> None:
    profile = load_profile()
    assert (profile.name, profile.writer, profile.reasoner) == ("local", "local", "local")
    ask = profile.settings.ask.model_copy(update={"attempts": Settings().ask.attempts})
    assert profile.settings.ask.attempts == 2  # Rules cannot word a third search anew.
    assert profile.settings.model_copy(update={"ask": ask}) == Settings()
    assert profile.chat == {}
    assert profile.images is None


def test_the_local_profile_needs_only_models_of_the_manifest_without_a_language_model() -> None:
    weights = load_profile("local").weights
    assert weights == (
        *("whisper-base", "minilm", "reranker", "en_core_web_sm", "insightface", "wespeaker"),
        *("yolox-nano", "yamnet"),
    )
    assert set(weights) <= set(load_manifest())
    assert sum(load_manifest()[name].size for name in weights) < 300_000_000


@pytest.mark.parametrize("name", bundled_profiles())
def test_bundled_profiles_are_sound(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    assert profile.about
    assert set(profile.weights) <= set(load_manifest())
    wants_words = "llm" in (profile.writer, profile.reasoner)
    assert (wants_words or profile.answering == "reader") == bool(profile.chat)
    if wants_words:
        assert profile.chat_for("anything") == profile.chat["default"]


def test_flag_environment_file_and_local(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_profile(None, config).name == "local"
    config.write_text('profile = "gemini"\n')
    assert load_profile(None, config).name == "gemini"
    monkeypatch.setenv("HOMER_PROFILE", "ollama")
    assert load_profile(None, config).name == "ollama"
    assert load_profile("openai", config).name == "openai"


def test_homer_toml_changes_one_thing_of_a_bundled_profile(config: Path) -> None:
    config.write_text(
        '[profiles.local]\nfaces = "yunet_sface"\n[profiles.local.settings.watch]\nkeyframes = 5\n'
    )
    profile = load_profile(None, config)
    assert (profile.faces, profile.settings.watch.keyframes) == ("yunet_sface", 5)
    assert profile.settings.watch.clip_ms == Settings().watch.clip_ms
    assert "yunet_sface" in profile.weights
    assert "insightface" not in profile.weights
    assert load_profile("gemini", config).faces == "insightface"


def test_a_profile_of_ones_own_is_based_on_another(config: Path) -> None:
    config.write_text(
        'profile = "mine"\n[profiles.mine]\nbase = "openai"\n'
        '[profiles.mine.chat.default]\nbase_url = "http://127.0.0.1:8000/v1"\n'
        '[profiles.mine.chat.judge]\nmodel = "openai:large"\n'
    )
    profile = load_profile(None, config)
    assert (profile.name, profile.writer) == ("mine", "llm")
    assert profile.chat_for("writer").base_url == "http://127.0.0.1:8000/v1"
    assert profile.chat_for("writer").model == load_profile("openai").chat["default"].model
    assert profile.chat_for("judge").model == "openai:large"


def test_a_profile_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "lab.toml"
    path.write_text('base = "local"\nreranker = "reranker"\nlanguages = ["en", "de"]\n')
    profile = load_profile(str(path))
    assert (profile.name, profile.languages) == ("lab", ("en", "de"))


def test_files_that_cannot_be_read_say_so(tmp_path: Path, config: Path) -> None:
    with pytest.raises(NotFound, match=r"absent\.toml"):
        load_profile(str(tmp_path / "absent.toml"))
    config.write_text("profile = ")
    with pytest.raises(SetupError, match=r"homer\.toml cannot be read"):
        load_profile(None, config)


def test_profiles_in_a_ring_are_refused(config: Path) -> None:
    config.write_text('[profiles.a]\nbase = "b"\n[profiles.b]\nbase = "a"\n')
    with pytest.raises(SetupError, match="a -> b -> a"):
        load_profile("a", config)


def test_a_language_model_in_this_process_is_part_of_the_weights() -> None:
    assert "qwen2.5-coder-1.5b" in load_profile("small").weights
    spec = ChatSpec(model="llama:qwen2.5-coder-1.5b")
    profile = Profile(name="p", reranker=None, chat={"a": spec, "b": spec})
    assert profile.weights.count("qwen2.5-coder-1.5b") == 1
    assert "reranker" not in profile.weights


@pytest.mark.parametrize(
    ("spec", "usd"),
    [
        (ChatSpec(model="openai:gpt-5.4-mini"), 0.75 + 4.5 / 2),
        (ChatSpec(model="openai:gpt-5.4-mini", price=Price(input=1, output=2)), 2.0),
        (ChatSpec(model="openai:gpt-5.4-mini", base_url="http://localhost/v1"), 0.0),
        (ChatSpec(model="openai:of-my-own"), 0.0),
    ],
)
def test_a_call_costs_what_its_tokens_cost(spec: ChatSpec, usd: float) -> None:
    assert cost_usd(spec, 1_000_000, 500_000) == pytest.approx(usd)


@pytest.mark.parametrize("name", ["gemini", "openai"])
def test_the_bundled_profiles_models_have_a_price(name: str) -> None:
    assert cost_usd(load_profile(name).chat["default"], 1_000_000, 0) > 0


PRICES = """
profile = "mine"
[prices]
"openai:gpt-of-tomorrow" = { input = 2.0, output = 8.0 }
"openai:other" = { input = 1.0, output = 1.0 }
[profiles.mine]
base = "openai"
chat.default.model = "openai:gpt-of-tomorrow"
chat.writer = { model = "openai:other", price = { input = 5.0, output = 5.0 } }
"""


def test_a_users_table_of_prices_knows_new_models_and_a_profile_comes_first(config: Path) -> None:
    config.write_text(PRICES)
    chat = load_profile(None, config).chat
    assert cost_usd(chat["default"], 1_000_000, 500_000) == pytest.approx(6.0)
    assert cost_usd(chat["writer"], 1_000_000, 0) == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("profile = 3", "homer.toml is wrong at profile: "),
        ('profiles = ["local"]', "homer.toml is wrong at profiles: "),
        ("[profiles]\nlocal = 3", "homer.toml is wrong at profiles.local: "),
        ("prices = 3", "homer.toml is wrong at prices: "),
        ('[prices]\n"openai:m" = { input = "dear" }', "homer.toml is wrong at prices.openai:m"),
        ("[profiles.local]\nbase = 3", "'local' is wrong at base: "),
        ('[profiles.local]\nbase = ["openai"]', "'local' is wrong at base: "),
        ("[profiles.local]\nchat = 3", "'local' is wrong at chat: "),
        ("[profiles.local.chat]\ndefault = 3", "'local' is wrong at chat.default"),
        ("[profiles.local]\nname = 3\nsettings = 1", "'local' is wrong at settings: "),
        ("[profiles.local.settings.watch]\nsample_fps = inf", "settings.watch.sample_fps: "),
        ("[profiles.local.settings.memory]\nlabel_words = 2", "settings.memory.label_words: "),
        ("[profiles.local.settings.memory]\npatch_every = 90", "settings.memory: "),
        ("[profiles.local.chat.x]\nmodel = 'openai:m'\ntimeout_s = inf", "chat.x.timeout_s: "),
        ("a = " + "[" * 20_000, "homer.toml cannot be read: "),
        ('a = "\\ud800"', "homer.toml cannot be read: "),
    ],
)
def test_every_mistake_is_reported_with_its_place(tmp_path: Path, text: str, where: str) -> None:
    path = tmp_path / "homer.toml"
    path.write_text(text)
    with pytest.raises(SetupError) as reported:
        load_profile(None, path)
    assert where in str(reported.value)


def test_a_base_that_can_be_no_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "homer.toml"
    path.write_text('[profiles.local]\nbase = "\\u0000.toml"')
    with pytest.raises(SetupError, match="cannot be read"):
        load_profile("local", path)
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(SetupError, match=r"folder\.toml cannot be read"):
        load_profile(str(tmp_path / "folder.toml"))


def test_what_others_keep_in_the_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "homer.toml"
    path.write_text('colour = "blue"\n[other]\nprofile = 3\n')
    assert load_profile(None, path) == load_profile("local")


VALUES: st.SearchStrategy[object] = st.recursive(
    st.sampled_from(["3", "true", '"local"', '"x"', "1.5", "1979-05-27", '"openai:m"', "[]", "-1"]),
    lambda inner: (
        st.lists(inner, max_size=2).map(lambda found: f"[{', '.join(map(str, found))}]")
        | st.dictionaries(
            st.sampled_from(
                ["base", "chat", "default", "model", "settings", "watch", "clip_ms", "x"]
            ),
            inner,
            max_size=2,
        ).map(lambda found: "{" + ", ".join(f"{k} = {v}" for k, v in found.items()) + "}")
    ),
    max_leaves=5,
)
TABLES = st.dictionaries(
    st.sampled_from(["profile", "profiles", "prices", "profiles.x", "profiles.local", "other"]),
    VALUES,
    max_size=3,
).map(lambda found: "\n".join(f"{name} = {value}" for name, value in found.items()))


@given(TABLES | st.text(max_size=40), st.sampled_from([None, "x", "local"]))
def test_any_file_gives_a_profile_or_one_line(
    tmp_path_factory: pytest.TempPathFactory, text: str, wanted: str | None
) -> None:
    path = tmp_path_factory.mktemp("config") / "homer.toml"
    path.write_text(text, encoding="utf-8", newline="")
    try:
        found = load_profile(wanted, path)
    except HomerError as error:
        reported = str(error)
        assert reported
        assert "\n" not in reported.splitlines()[0]
    else:
        assert isinstance(found, Profile)
        assert wanted is None or found.name == wanted


@given(st.text(max_size=20))
def test_any_name_is_a_profile_or_is_not_found(name: str) -> None:
    if name in ("", *bundled_profiles()):
        assert load_profile(name or None).name in bundled_profiles()
    elif not name.endswith(".toml"):
        with pytest.raises(NotFound, match="there is no profile"):
            load_profile(name)


@given(
    st.integers(0, 10**9),
    st.integers(0, 10**9),
    st.floats(0, 1000, allow_nan=False),
    st.floats(0, 1000, allow_nan=False),
)
def test_costs_add_up_and_are_never_below_zero(
    tokens_in: int, tokens_out: int, dear_in: float, dear_out: float
) -> None:
    spec = ChatSpec(model="openai:mine", price=Price(input=dear_in, output=dear_out))
    whole = cost_usd(spec, tokens_in, tokens_out)
    assert whole >= 0
    assert whole == pytest.approx(cost_usd(spec, tokens_in, 0) + cost_usd(spec, 0, tokens_out))
    assert cost_usd(spec, 10**6, 0) == pytest.approx(dear_in)
