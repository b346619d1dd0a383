"""A ``homer.toml`` or profile that is not what it should be is one line that says where."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import HomerError, NotFound, SetupError
from models.profile import Profile, load_profile
from models.specs import ChatSpec, Price, bundled_profiles, cost_usd


@pytest.fixture(autouse=True)
def _no_profile_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOMER_PROFILE", raising=False)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("profile = 3", "homer.toml is wrong at profile: "),
        ("profiles = 3", "homer.toml is wrong at profiles: "),
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
        ("[profiles.local.settings.watch]\nface_quality = nan", "settings.watch.face_quality: "),
        ("[profiles.local.settings.memory]\nlabel_words = 2", "settings.memory.label_words: "),
        ("[profiles.local.settings.memory]\npatch_every = 90", "settings.memory: "),
        ("[profiles.local.chat.x]\nmodel = 'openai:m'\ntimeout_s = inf", "chat.x.timeout_s: "),
        ('[prices]\n"openai:m" = { input = nan, output = 1 }', "prices.openai:m.input"),
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


@pytest.mark.parametrize(
    ("model", "provider", "name"),
    [
        ("openai:gpt-5", "openai", "gpt-5"),
        ("llama:a", "llama", "a"),
        ("google_genai:m:latest", "google_genai", "m:latest"),
    ],
)
def test_a_model_is_named_by_provider_and_name(model: str, provider: str, name: str) -> None:
    spec = ChatSpec(model=model)
    assert (spec.provider, spec.model_name) == (provider, name)


@pytest.mark.parametrize("role", ["writer", "reasoner", "judge"])
def test_a_role_has_its_own_model_or_the_default_one(role: str) -> None:
    own, other = ChatSpec(model="openai:own"), ChatSpec(model="openai:other")
    assert Profile(name="p", chat={role: own, "default": other}).chat_for(role) == own
    assert Profile(name="p", chat={"default": other}).chat_for(role) == other
    with pytest.raises(SetupError, match=rf"'p' has no language model for the role '{role}'"):
        Profile(name="p", chat={"someone": other}).chat_for(role)
