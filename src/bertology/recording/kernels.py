"""What runs on an accelerator: one piece of attention maps a program, in registers; see `kernel_calls`.

Scores are made again from queries and keys, as fused attention does; what leaves is a few numbers a row. Logarithms are
to the base 2 in here.
"""
# What Triton compiles has no types that a checker knows, and arguments that go together stand in one line.
# pyright: basic, reportMissingImports=false
# fmt: off

from __future__ import annotations

import triton
import triton.language as tl

UNSEEN = tl.constexpr(-1e30)
"""Scores from here down are a mask's."""


@triton.jit
def _scores(asking, key, mask, key_row, mask_row, rows, columns, size, SCALING, MASKED, D: tl.constexpr):
    """A piece of a map's scores, (row, column); minus infinity where nothing may be seen."""
    seen = columns[None, :] < size
    keys = tl.load(key + columns[None, :] * key_row + tl.arange(0, D)[:, None], mask=seen, other=0.0)
    scores = tl.dot(asking, keys) * SCALING
    if MASKED:
        inside = (rows[:, None] < size) & seen
        added = tl.load(mask + rows[:, None] * mask_row + columns[None, :], mask=inside, other=0.0).to(tl.float32)
        seen = seen & (added > UNSEEN)
        scores += tl.where(seen, added, 0.0) * 1.4426950408889634
    return tl.where(seen, scores, float("-inf"))


@triton.jit
def row_sums(
    query, key, mask, query_batch, query_head, query_row, key_batch, key_head, key_row, mask_batch, mask_row,
    size, heads, known, found, by_feature, distances,
    SCALING: tl.constexpr, MASKED: tl.constexpr, D: tl.constexpr, M: tl.constexpr, F: tl.constexpr,
):
    """Along the rows of one block of a head's map: highest weights, information, sums over what is known of targets."""
    head, block, entry = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    places = tl.arange(0, M)
    rows = block * M + places
    there = rows < size
    query += entry * query_batch + head * query_head
    key += entry * key_batch + head * key_head
    mask += entry * mask_batch
    known += entry * size * F
    number = tl.arange(0, F)[None, :]
    asking = tl.load(query + rows[:, None] * query_row + tl.arange(0, D)[None, :], mask=there[:, None], other=0.0)
    highest = tl.full([M], float("-inf"), tl.float32)
    ordinary_highest = tl.full([M], float("-inf"), tl.float32)
    total = tl.zeros([M], tl.float32)
    ordinary_total = tl.zeros([M], tl.float32)
    products = tl.zeros([M], tl.float32)
    ordinary_products = tl.zeros([M], tl.float32)
    sums = tl.zeros([M, F], tl.float32)
    signed = tl.zeros([M, F], tl.float32)
    for start in range(0, size, M):
        columns = start + places
        scores = _scores(asking, key, mask, key_row, mask_row, rows, columns, size, SCALING, MASKED, D)
        ordinary = tl.load(known + columns * F + 4, mask=columns < size, other=0.0).to(tl.float32)[None, :]
        features = tl.load(known + columns[:, None] * F + number, mask=columns[:, None] < size, other=0.0)
        ordinary_highest = tl.maximum(ordinary_highest, tl.max(tl.where(ordinary > 0, scores, float("-inf")), 1))
        # As fused attention does: what was summed so far is brought down to the highest score that is known by now.
        new = tl.maximum(highest, tl.max(scores, 1))
        safe = tl.where(new == float("-inf"), 0.0, new)
        down = tl.where(highest == float("-inf"), 0.0, highest - safe)
        scale = tl.where(highest == float("-inf"), 0.0, tl.exp2(down))
        highest = new
        logs = scores - safe[:, None]
        weights = tl.exp2(logs)
        logs = weights * tl.where(weights > 0, logs, 0.0)
        products = (products + total * down) * scale + tl.sum(logs, 1)
        ordinary_products = (ordinary_products + ordinary_total * down) * scale + tl.sum(logs * ordinary, 1)
        total = total * scale + tl.sum(weights, 1)
        ordinary_total = ordinary_total * scale + tl.sum(weights * ordinary, 1)
        halves = weights.to(tl.float16)
        here = tl.dot(halves, features)
        sums = sums * scale[:, None] + here
        signed = signed * scale[:, None]
        # What stands before a row is farther the smaller its place, what stands after it the larger.
        if start < block * M:
            signed -= here
        elif start > block * M:
            signed += here
        else:
            after = columns[None, :] > rows[:, None]
            signed += 2.0 * tl.dot(tl.where(after, halves, 0.0), features) - here
    safe = tl.where(highest == float("-inf"), 0.0, highest)
    part, logarithm = 1 / total, tl.log2(total)
    sums *= part[:, None]
    signed *= part[:, None]
    place = (entry * heads + head) * size + rows
    step = tl.num_programs(2) * heads * size
    tl.store(found + place, safe + logarithm, mask=there)
    tl.store(found + step + place, part, mask=there)
    tl.store(found + 2 * step + place, part * tl.exp2(ordinary_highest - safe), mask=there)
    information = logarithm - products * part
    ordinary_information = (logarithm * ordinary_total - ordinary_products) * part
    tl.store(found + 3 * step + place, information * 0.6931471805599453, mask=there)
    tl.store(found + 4 * step + place, ordinary_information * 0.6931471805599453, mask=there)
    at = place[:, None] * F + number
    tl.store(by_feature + at, sums, mask=there[:, None])
    tl.store(distances + at, signed, mask=there[:, None])


@triton.jit
def pair_sums(
    query, key, mask, query_batch, query_head, query_row, key_batch, key_head, key_row, mask_batch, mask_row,
    size, heads, normaliser, marks, all_marks, weights, found,
    SCALING: tl.constexpr, MASKED: tl.constexpr, D: tl.constexpr, M: tl.constexpr,
    LISTED: tl.constexpr, WEIGHED: tl.constexpr, SUMS: tl.constexpr,
):
    """Of the rows of one block of a head's map: attention over marked pairs, and times weights over all pairs."""
    head, block, entry = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    places = tl.arange(0, M)
    rows = block * M + places
    there = rows < size
    query += entry * query_batch + head * query_head
    key += entry * key_batch + head * key_head
    mask += entry * mask_batch
    asking = tl.load(query + rows[:, None] * query_row + tl.arange(0, D)[None, :], mask=there[:, None], other=0.0)
    base = tl.load(normaliser + (entry * heads + head) * size + rows, mask=there, other=float("inf"))
    blocks = tl.num_programs(1)
    sums = tl.zeros([M, SUMS], tl.float32)
    number = tl.arange(0, SUMS)[None, :]
    for step in range(blocks):
        columns = step * M + places
        bits = tl.load(all_marks + (entry * blocks + block) * blocks + step)
        if (bits != 0) | (WEIGHED > 0):
            scores = _scores(asking, key, mask, key_row, mask_row, rows, columns, size, SCALING, MASKED, D)
            attention = tl.exp2(scores - base[:, None])
            inside = there[:, None] & (columns[None, :] < size)
            place = rows[:, None] * size + columns[None, :]
            if bits != 0:
                own = tl.load(marks + entry * size * size + place, mask=inside, other=0)
                for listed in tl.static_range(LISTED):
                    if ((bits >> listed) & 1) != 0:
                        chosen = tl.sum(tl.where(((own >> listed) & 1) != 0, attention, 0.0), 1)
                        sums += tl.where(number == listed, chosen[:, None], 0.0)
            for weighed in tl.static_range(WEIGHED):
                at = (entry * WEIGHED + weighed) * size * size + place
                weight = tl.load(weights + at, mask=inside, other=0.0).to(tl.float32)
                chosen = tl.sum(weight * attention, 1)
                sums += tl.where(number == LISTED + weighed, chosen[:, None], 0.0)
    place = ((entry * heads + head) * blocks + block) * SUMS + tl.arange(0, SUMS)
    tl.store(found + place, tl.sum(sums, 0))


@triton.jit
def strongest_words(
    query, key, mask, query_batch, query_head, query_row, key_batch, key_head, key_row, mask_batch, mask_row,
    size, heads, normaliser, start, count, first_word, word_count, word, share, attending, attended, words, blocks,
    SCALING: tl.constexpr, MASKED: tl.constexpr, D: tl.constexpr, M: tl.constexpr,
):
    """Between the words of two blocks, in all heads: the strongest target of each word, and its strongest source."""
    pair, entry = tl.program_id(0), tl.program_id(1)
    places, inner = tl.arange(0, M), tl.arange(0, D)
    block, other = pair // blocks, pair % blocks
    source, target = entry * blocks + block, entry * blocks + other
    from_there, to_there = places < tl.load(count + source), places < tl.load(count + target)
    rows, columns = tl.load(start + source) + places, tl.load(start + target) + places
    from_words, to_words = tl.load(first_word + source) + places, tl.load(first_word + target) + places
    from_known, to_known = places < tl.load(word_count + source), places < tl.load(word_count + target)
    row_word = tl.load(word + entry * size + rows, mask=from_there, other=-1)
    column_word = tl.load(word + entry * size + columns, mask=to_there, other=-1)
    of_rows = (row_word[None, :] == from_words[:, None]).to(tl.float16)
    of_columns = (column_word[:, None] == to_words[None, :]).to(tl.float16)
    part = tl.load(share + entry * words + from_words, mask=from_known, other=0.0)
    present = tl.load(share + entry * words + to_words, mask=to_known, other=0.0) > 0
    usable = (part > 0)[:, None] & present[None, :] & (from_words[:, None] != to_words[None, :])
    for head in range(heads):
        asked = query + entry * query_batch + head * query_head
        asking = tl.load(asked + rows[:, None] * query_row + inner[None, :], mask=from_there[:, None], other=0.0)
        base = tl.load(normaliser + (entry * heads + head) * size + rows, mask=from_there, other=float("inf"))
        keys = key + entry * key_batch + head * key_head
        scores = _scores(
            asking, keys, mask + entry * mask_batch, key_row, mask_row, rows, columns, size, SCALING, MASKED, D
        )
        summed = tl.dot(tl.exp2(scores - base[:, None]).to(tl.float16), of_columns)
        between = tl.dot(of_rows, summed.to(tl.float16)) * part[:, None]
        # A weight and its place in one number: the highest is the first of the strongest words.
        weights = between.to(tl.int32, bitcast=True) & -M
        at = (entry * heads + head) * blocks
        best = tl.max(tl.where(usable, weights | (M - 1 - places[None, :]), -1), 1)
        tl.store(attending + (at + other) * words + from_words, best, mask=from_known)
        best = tl.max(tl.where(usable, weights | (M - 1 - places[:, None]), -1), 0)
        tl.store(attended + (at + block) * words + to_words, best, mask=to_known)
