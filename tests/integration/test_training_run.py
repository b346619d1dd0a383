"""Two steps of GRPO with an export, on a tiny random model without weights from anywhere.

Needs the extra ``train``; without it the test is skipped (docs/training.md).
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from domain.asking import Question
from domain.errors import InputError
from domain.skills import JudgedTrajectory
from evals.training.export import TRAJECTORIES, environment_of, export_training, read_prompts
from graphs.context_factory import StrategyTools
from skills.learn import judge
from store.database import Store
from strategies.registry import find_strategy
from tests.support.asking import PARTY, WordToolbox, remember_party
from tests.support.caption_evaluations import workspace_of
from tests.support.runs import ask

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
trl = pytest.importorskip("trl")

RAG = find_strategy("plain-rag")
DOINGS = ("opens the gate", "plays the piano", "carries a cup", "shows the piano")
QUESTIONS = [f"{word} {doing}?" for word in ("Who", "Which of both") for doing in DOINGS]
CALL = json.dumps({"name": "nearest", "arguments": {"query": "the gate of the garden"}})
WRITTEN = (r"\boxed{A}", r"\boxed{B}", f"<tool_call>\n{CALL}\n</tool_call>")
"""What the model can write, besides the end of its turn: a random one hits on nothing else."""
STEPS, GROUP = 2, 8


def exported(store: Store, folder: Path, questions: list[str]) -> Path:
    remember_party(store)
    for text in questions:
        question = Question(text=text, videos=(PARTY,), options=("Ann", "Bob"))
        name = ask(store, WordToolbox(), question, strategy=RAG.name).trajectory_id
        judge(store, JudgedTrajectory(trajectory=name, question_type="who", right=True))
    export_training(store, RAG, WordToolbox().profile.name, folder)
    return folder


def tiny_tokenizer(prompts: list[Any], tools: list[Any], texts: list[str]) -> Any:
    """A tokenizer with a chat template that takes tools.

    It is made of the prompts and texts themselves, of which it makes few tokens, and long ones.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from trl.chat_template_utils import qwen3_chat_template

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    whole = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, chat_template=qwen3_chat_template
    )
    rendered = [whole.apply_chat_template(one, tools=tools, tokenize=False) for one in prompts]
    trainer = trainers.BpeTrainer(
        vocab_size=1500,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    made.train_from_iterator([*rendered, *texts], trainer)
    made.add_tokens([AddedToken(text, normalized=False) for text in WRITTEN])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=qwen3_chat_template,
        padding_side="left",
    )


Callback: Any = transformers.TrainerCallback


class Watching(Callback):  # type: ignore[misc]
    """Notes the gradients of each step."""

    def __init__(self) -> None:
        self.norms: list[list[float]] = []

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        gradients = [part.grad for part in more["model"].parameters() if part.grad is not None]
        self.norms.append([float(gradient.norm()) for gradient in gradients])


def noted(trainer: Any) -> list[dict[str, Any]]:
    """Note what is generated and scored, batch by batch, as the trainer goes."""
    batches: list[dict[str, Any]] = []
    score, generate = trainer._calculate_rewards, trainer._generate_and_score_completions

    def scored(inputs: Any, prompts: Any, completions: Any, *more: Any) -> Any:
        rewards = score(inputs, prompts, completions, *more)
        batches.append({"rewards": rewards[:, 0].clone(), "completions": completions})
        return rewards

    def generated(inputs: Any) -> Any:
        result = generate(inputs)
        batches[-1]["advantages"] = result["advantages"].clone()
        return result

    trainer._calculate_rewards = scored
    trainer._generate_and_score_completions = generated
    return batches


@pytest.mark.timeout(900)
def test_two_steps_of_grpo_run_on_a_tiny_model(store: Store, tmp_path: Path) -> None:
    # As many questions as one step takes, each judged right.
    export = exported(store, tmp_path / "export", QUESTIONS)
    from evals.training.trainer import make_trainer

    workspace = workspace_of(store)
    tools = StrategyTools(store, workspace.toolbox)
    environment: Any = environment_of(RAG, workspace.profile, tools)()
    rows = map(json.loads, (export / TRAJECTORIES).read_text().splitlines())
    results = [str(m["content"]) for row in rows for m in row["completion"]]
    prompts = [row["prompt"] for row in read_prompts(export)]
    tokenizer = tiny_tokenizer(prompts, [environment.nearest], results)
    torch.manual_seed(1)
    config = transformers.Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = transformers.AutoModelForCausalLM.from_config(config)
    writable = set(tokenizer.convert_tokens_to_ids([*WRITTEN, "<|im_end|>"]))
    suppressed = [token for token in range(len(tokenizer)) if token not in writable]
    trainer = make_trainer(
        workspace,
        export,
        model,
        tmp_path / "out",
        tokenizer,
        max_steps=STEPS,
        max_completion_length=1024,
        max_tool_calling_iterations=1,
        gradient_checkpointing=False,
        generation_kwargs={"suppress_tokens": suppressed},
        save_steps=STEPS,
        use_cpu=True,
        bf16=False,
        seed=1,
    )
    batches, watching = noted(trainer), Watching()
    trainer.add_callback(watching)
    before = {name: part.detach().clone() for name, part in model.named_parameters()}
    trainer.train()

    rewards = torch.cat([batch["rewards"] for batch in batches]).reshape(-1, GROUP)
    advantages = torch.cat([batch["advantages"] for batch in batches]).reshape(-1, GROUP)
    assert (rewards.numel(), set(rewards.unique().tolist())) == (STEPS * 64, {0.0, 1.0})
    mean, deviation = rewards.mean(1, keepdim=True), rewards.std(1, keepdim=True)
    assert torch.allclose(advantages, (rewards - mean) / (deviation + 1e-4), atol=1e-4)
    assert torch.allclose(advantages.sum(1), torch.zeros(len(advantages)), atol=1e-4)

    found = [
        message["content"]
        for batch in batches
        for completion in batch["completions"]
        for message in completion
        if message["role"] == "tool"
    ]
    assert any("Ann opens the wooden gate" in text for text in found)

    assert len(watching.norms) == STEPS
    assert all(math.isfinite(norm) for norms in watching.norms for norm in norms)
    assert all(any(norm > 0 for norm in norms) for norms in watching.norms)
    assert [n for n, part in model.named_parameters() if not torch.equal(part, before[n])]
    assert trainer.state.global_step == STEPS

    loaded = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path / "out" / f"checkpoint-{STEPS}"
    )
    for name, part in loaded.named_parameters():
        assert torch.equal(part, dict(model.named_parameters())[name])


def test_with_fewer_prompts_than_a_step_none_is_trained(store: Store, tmp_path: Path) -> None:
    from evals.training.trainer import make_trainer

    few = exported(store, tmp_path / "export", QUESTIONS[:7])
    with pytest.raises(InputError, match="7 prompts are too few: one step takes 8"):
        make_trainer(workspace_of(store), few, None, tmp_path / "out")
