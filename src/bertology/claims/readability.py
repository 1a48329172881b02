"""Whether claims can be tested on a corpus: its language, and the tokens that the tokeniser of the model knows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from bertology.analyses.run import RunInputs
from bertology.claims.claim import Claim
from bertology.claims.claim_results import UnknownTokens
from bertology.corpus.corpus import Corpus
from bertology.corpus.language import Language, detect_language
from bertology.corpus.read import load_corpus
from bertology.encoder.encoder import Encoder
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal
from bertology.recording.recording import Recording


def other_language_refusals(claims: Sequence[Claim], corpus: Corpus | None) -> dict[str, Refusal]:
    """Why claims about other languages, or with stimuli in one, do not apply to the corpus, by the id of the claim."""
    language = detect_language(corpus) if corpus is not None else None
    if language is None:
        return {}
    refusals = {claim.id: _language_refusal(claim, language) for claim in claims}
    return {id: refusal for id, refusal in refusals.items() if refusal is not None}


def _language_refusal(claim: Claim, language: Language) -> Refusal | None:
    corpus_language = f"the corpus is in {'another language' if language == 'other' else language}"
    remedy = "Leave it out, or choose another corpus with --corpus"
    if claim.languages and language not in claim.languages:
        languages = " and ".join(claim.languages)
        expected = f"a corpus in {' or '.join(claim.languages)}: {claim.language_reason}"
        return Refusal(f"This finding is about {languages}, and {corpus_language}", expected, remedy)
    for stimuli in dict.fromkeys(run.corpus for run in claim.all_runs.values() if run.corpus is not None):
        of_stimuli = _stimuli_language(stimuli)
        if of_stimuli not in (None, language):
            problem = f"This finding is tested on {of_stimuli} stimuli ({stimuli}), and {corpus_language}"
            return Refusal(problem, f"a corpus in {of_stimuli}", remedy)
    return None


@cache
def _stimuli_language(corpus: str) -> Language | None:
    """The language of stimuli; None if it is not known."""
    if corpus.startswith("generated:"):
        return "English"  # by simple grammars, with too few function words to tell
    language = detect_language(load_corpus(corpus))
    return None if language == "other" else language


def count_unknown_tokens(model: Encoder | Recording, corpus: Corpus) -> UnknownTokens:
    """Count the tokens of a corpus, and those the model's tokeniser does not know, without special tokens."""
    if isinstance(model, Recording):
        inputs, name = [recorded.tokens for recorded in model.inputs], model.encoder.name
    else:
        inputs, name = model.tokenise([text for example in corpus for text in example.text_inputs]), model.name
    n_tokens = sum(int((tokens.special_kinds == SpecialToken.NONE).sum()) for tokens in inputs)
    return UnknownTokens(name, corpus.name, sum(tokens.n_unknown for tokens in inputs), n_tokens)


def count_unknown_tokens_by_model(inputs: RunInputs) -> tuple[UnknownTokens, ...]:
    """The unknown tokens of the corpus for the model and the model to compare with."""
    models = (inputs.recording or inputs.encoder, inputs.against_recording or inputs.against)
    corpus = inputs.corpus
    return tuple(count_unknown_tokens(model, corpus) for model in models if model is not None and corpus is not None)


def refuse_unreadable(inputs: RunInputs, max_unknown: float) -> Refusal | None:
    """Why the model cannot read the stimuli of a claim, or a built-in corpus, if it cannot."""
    try:
        for count in count_unknown_tokens_by_model(inputs):
            count.check(max_unknown)
    except Refusal as refusal:
        return refusal
    return None
