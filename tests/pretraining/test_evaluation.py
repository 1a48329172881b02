from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import small
import torch
from pretraining.evaluate import Material, figures, summary
from pretraining.evaluation.attention import word_attention
from pretraining.evaluation.masked import guess, pseudo_log_likelihoods
from pretraining.evaluation.probe import gold_edges, spanning_edges, train_probe, tree_distances, uuas
from pretraining.evaluation.states import averaging
from pretraining.evaluation.subject import Subject, load_subject
from pretraining.evaluation.treebank import Tree, read_trees
from pretraining.export import export_model
from pretraining.model import make_model

from shared_data import shared

CONLLU = """# newdoc id = one
# sent_id = 1
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tAUX\t_\t_\t3\taux\t_\t_
2\tn't\tnot\tPART\t_\t_\t3\tadvmod\t_\t_
3\tgo\tgo\tVERB\t_\t_\t0\troot\t_\t_
3.1\tx\t_\t_\t_\t_\t_\t_\t_\t_
4\t.\t.\tPUNCT\t_\t_\t3\tpunct\t_\t_

# newdoc id = two
1\tStop\tstop\tVERB\t_\t_\t0\troot\t_\t_
"""


@pytest.fixture
def subject(tmp_path: Path) -> Subject:
    """An untrained small model."""
    small.tokeniser(tmp_path / "tokeniser")
    model = make_model(small.recipe().shape, seed=0)
    export_model(model, tmp_path / "tokeniser", tmp_path / "model")
    return load_subject(tmp_path / "model", device="cpu")


def test_trees_are_read_without_ranges_and_empty_nodes(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(CONLLU, encoding="utf-8")
    first, second = read_trees(path)
    assert first.words == ("Do", "n't", "go", ".")
    assert first.heads == (2, 2, -1, 2)
    assert (first.document, second.document) == ("one", "two")
    assert gold_edges(first, [0, 1, 2]) == {(0, 2), (1, 2)}
    assert tree_distances(first)[0].tolist() == [0, 2, 1, 2]


def test_a_guess_masks_its_place_alone(subject: Subject) -> None:
    ids = subject.tokeniser.encode("the fox saw the hen .")
    (one,) = guess(subject, [ids], [2], [ids[2]])
    masked = torch.tensor([[*ids[:2], subject.mask, *ids[3:]]])
    with torch.inference_mode():
        logs = subject.model(masked).prediction_logits[0, 2].log_softmax(-1)
    assert one.logarithm == pytest.approx(logs[ids[2]].item(), abs=1e-5)
    assert one.right == (int(logs.argmax()) == ids[2])


def test_pseudo_log_likelihood_is_a_sum_and_batching_changes_nothing(subject: Subject) -> None:
    sentences = ["the fox saw the hen .", "the hen .", "the fox"]
    together = pseudo_log_likelihoods(subject, sentences)
    alone = [pseudo_log_likelihoods(subject, [sentence])[0] for sentence in sentences]
    np.testing.assert_allclose(together, alone, rtol=1e-4)
    ids = subject.tokeniser.encode(sentences[1])
    places = range(1, len(ids) - 1)
    guesses = guess(subject, [ids for _ in places], list(places), [ids[at] for at in places])
    assert together[1] == pytest.approx(sum(one.logarithm for one in guesses), abs=1e-4)


def test_attention_to_a_word_is_summed_and_from_a_word_averaged() -> None:
    attention = torch.tensor(
        [[[[0.2] * 5, [0, 0.1, 0.2, 0.7, 0], [0, 0.3, 0.2, 0.5, 0], [0, 0.5, 0.4, 0.1, 0], [0.2] * 5]]]
    )
    words = word_attention(attention, averaging([0, 0, 1], torch.device("cpu")))
    torch.testing.assert_close(words[0, 0], torch.tensor([[0.4, 0.6], [0.9, 0.1]]))


def test_a_spanning_tree_is_found_where_distances_are_zero() -> None:
    distances = np.array([[0.0, 0, 5], [0, 0, 1], [5, 1, 0]])
    assert spanning_edges(distances) == {(0, 1), (1, 2)}


def planted(count: int, seed: int) -> tuple[list[Tree], list[torch.Tensor]]:
    """Random trees with two layers of states: one embeds the tree, a step of its own for each edge; one is noise."""
    choose = random.Random(seed)
    generator = torch.Generator().manual_seed(seed)
    trees: list[Tree] = []
    states: list[torch.Tensor] = []
    for _ in range(count):
        size = choose.randint(5, 8)
        heads = (-1, *(choose.randrange(word) for word in range(1, size)))
        trees.append(Tree(("w",) * size, ("NOUN",) * size, heads, ("dep",) * size, ""))
        paths = torch.zeros(size, 16)
        for word in range(1, size):
            paths[word] = paths[heads[word]]
            paths[word, word] += 1
        states.append(torch.stack([paths, torch.randn(size, 16, generator=generator)]))
    return trees, states


def test_the_probe_finds_a_planted_tree_and_only_chance_in_noise() -> None:
    trees, states = planted(300, 0)
    transform = train_probe(states, trees, rank=16, epochs=60, seed=0)
    held_trees, held_states = planted(100, 1)
    scores, chain, edges = uuas(held_states, held_trees, transform)
    assert edges == sum(len(tree.words) - 1 for tree in held_trees)
    assert scores[0] > 0.95
    assert scores[1] < 0.5
    assert 0.2 < chain < 0.6


def test_all_figures_are_measured(subject: Subject, tmp_path: Path) -> None:
    trees = [
        Tree(
            ("the", "fox", "saw", "the", "hen"),
            ("DET", "NOUN", "VERB", "DET", "NOUN"),
            (1, 2, -1, 4, 2),
            ("det", "nsubj", "root", "det", "obj"),
            name,
        )
        for name in ("a", "b")
        for _ in range(60)
    ]
    (tmp_path / "blimp").mkdir()
    (tmp_path / "blimp" / "one.jsonl").write_text(
        '{"sentence_good": "the fox saw", "sentence_bad": "fox the saw", "linguistics_term": "order"}\n',
        encoding="utf-8",
    )
    material = Material(trees, trees, tmp_path / "blimp", None, small.documents(4))
    values = figures(subject, material)
    assert values["mlm"]["n"] == 600 - values["mlm"]["words_of_several_pieces"]
    assert values["attention"]["relations"]["det"]["n"] == 240
    assert values["attention"]["relations"]["det"]["offset_accuracy"] == 1
    assert values["probe"]["chain"] == 0.75
    assert values["blimp"]["n"] == 1
    assert values["nsp_held_out"]["n"] == 2_000
    assert "uuas" in summary(values)


@pytest.mark.slow
def test_the_draft_gets_its_published_head_figures() -> None:
    """det 86 % (offset 60), case 78 (38) and the neighbour heads were measured independently on the same treebank."""
    from pretraining.evaluation.attention import attention_figures

    subject = load_subject(shared("models/mini-draft"), device="cpu")
    found = attention_figures(subject, read_trees(shared("data/ud/en_ewt-ud-dev.conllu"))[:600])
    assert found.relations["det"].accuracy > 0.8
    assert 0.55 < found.relations["det"].offset_accuracy < 0.65
    assert found.relations["case"].accuracy > 0.7
    assert found.next_share > 0.9
    assert found.previous_share > 0.9
