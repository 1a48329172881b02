"""What runs on an accelerator: one piece of attention maps a program, in registers; see `kernel_calls`.

Scores are made again from queries and keys, as fused attention does; what leaves is a few numbers a row. Logarithms are
to the base 2 in here. An entry's `limit` is how many of its pieces may be seen, by all. Threads talk to each other as
late as can be: what a thread holds of a piece of 64 columns are columns 8 k + 2 t + c of each of its rows, for one t of
4, and `_by_thread` has k and c on axes of their own, along which nothing has to move.
"""
# What Triton compiles has no types that a checker knows, and arguments that go together stand in one line.
# pyright: basic, reportMissingImports=false
# fmt: off

from __future__ import annotations

import triton
import triton.language as tl

UNSEEN = tl.constexpr(-1e30)
"""The score of what may not be seen: hugely negative and yet a number, so that nothing times it is nothing."""
TO_NATS = tl.constexpr(0.6931471805599453)
SPECIAL = tl.constexpr(16)
"""How many special pieces are looked at together: the least a matrix unit takes."""


@triton.jit
def _scores(asking, key, mask, key_row, mask_row, rows, columns, size, limit, SCALING, MASKED, INSIDE, D: tl.constexpr):
    """A piece of a map's scores, (row, column). INSIDE: every column is there and may be seen, but for a mask."""
    at = key + columns[None, :] * key_row + tl.arange(0, D)[:, None]
    keys = tl.load(at) if INSIDE else tl.load(at, mask=columns[None, :] < size, other=0.0)
    scores = tl.dot(asking, keys) * SCALING
    if MASKED:
        inside = (rows[:, None] < size) & (columns[None, :] < size)
        added = tl.load(mask + rows[:, None] * mask_row + columns[None, :], mask=inside, other=UNSEEN).to(tl.float32)
        scores += tl.maximum(added, UNSEEN * TO_NATS) / TO_NATS
    elif not INSIDE:
        scores = tl.where(columns[None, :] < limit, scores, UNSEEN)
    return scores


@triton.jit
def _by_thread(values, M: tl.constexpr):
    """(row, k, t, c) from (row, column): nothing moves."""
    return tl.reshape(values, [M, M // 8, 4, 2])


@triton.jit
def _own_sum(values):
    """(row, t): what each thread has of its rows."""
    return tl.sum(tl.sum(values, 3), 1)


@triton.jit
def _own_max(values):
    return tl.max(tl.max(values, 3), 1)


@triton.jit
def _total_of_thread(values, M: tl.constexpr):
    """(warp, row, t): the sum of all that each thread has."""
    return tl.sum(tl.sum(tl.sum(tl.reshape(values, [M // 16, 2, 8, M // 8, 4, 2]), 5), 3), 1)


@triton.jit(do_not_specialize=["first"])
def row_sums(
    query, key, mask, query_batch, query_head, query_row, key_batch, key_head, key_row, mask_batch, mask_row,
    limits, size, heads, all_heads, first, known, special, has_special, sources, normaliser, found, by_source, specials,
    SCALING: tl.constexpr, MASKED: tl.constexpr, INSIDE: tl.constexpr,
    D: tl.constexpr, M: tl.constexpr, F: tl.constexpr,
):
    """Of the rows of one block of a head's map: the logarithm of the softmax's sum, and all that `Rows` has."""
    head, block, entry = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    blocks, limit = tl.num_programs(1), tl.load(limits + entry)
    places, inner = tl.arange(0, M), tl.arange(0, D)
    rows = block * M + places
    there = rows < size
    query += entry * query_batch + head * query_head
    key += entry * key_batch + head * key_head
    mask += entry * mask_batch
    known += entry * size * (5 * F)
    asking = tl.load(query + rows[:, None] * query_row + inner[None, :], mask=there[:, None], other=0.0)
    wide = tl.arange(0, 2 * F)[None, :]
    highest = tl.full([M], UNSEEN, tl.float32)
    highest_ordinary = tl.full([M, 4], UNSEEN, tl.float32)
    total = tl.zeros([M, 4], tl.float32)
    products = tl.zeros([M, 4], tl.float32)
    sides = tl.zeros([M, 2 * F], tl.float32)
    halves = tl.zeros([M, M], tl.float16)
    for turn in range(1, blocks + 1):
        step = (block + turn) % blocks
        columns = step * M + places
        scores = _scores(asking, key, mask, key_row, mask_row, rows, columns, size, limit, SCALING, MASKED, INSIDE, D)
        peak = _own_max(_by_thread(scores, M))
        # As fused attention does: what was summed so far is brought down to the highest score that is known by now.
        new = tl.maximum(highest, tl.max(peak, 1))
        down = tl.exp2(highest - new)
        logs = scores - new[:, None]
        weights = tl.exp2(logs)
        products = (products + (highest - new)[:, None] * total) * down[:, None]
        products += _own_sum(_by_thread(weights * logs, M))
        total = total * down[:, None] + _own_sum(_by_thread(weights, M))
        highest = new
        if tl.load(has_special + entry * blocks + step) != 0:
            ordinary = tl.load(known + columns * (5 * F) + F + 4, mask=columns < size, other=0.0)
            ordinary = _by_thread(tl.broadcast_to(ordinary[None, :], [M, M]), M)
            peak = _own_max(tl.where(ordinary > 0, _by_thread(scores, M), UNSEEN))
        highest_ordinary = tl.maximum(highest_ordinary, peak)
        halves = weights.to(tl.float16)
        # What stands before a row goes to the first half of the sums, what stands after it to the second.
        at = known + columns[:, None] * (5 * F) + tl.where(step > block, 0, F) + wide
        features = tl.load(at) if INSIDE else tl.load(at, mask=columns[:, None] < size, other=0.0)
        sides = tl.dot(halves, features, sides * down[:, None])
    # The piece on the diagonal was the last, and all of it was taken to stand before: what stands after is moved over.
    after = tl.where(places[None, :] > places[:, None], halves, 0.0)
    moves = tl.load(known + rows[:, None] * (5 * F) + 3 * F + wide, mask=there[:, None], other=0.0)
    sides = tl.dot(after, moves, sides)
    whole = tl.sum(total, 1)
    base = highest + tl.log2(whole)
    lost = tl.zeros([M], tl.float32)
    lost_products = tl.zeros([M], tl.float32)
    for start in range(0, specials, SPECIAL):
        some = tl.load(special + entry * specials + start + tl.arange(0, SPECIAL))
        at = tl.maximum(some, 0)
        few = _scores(asking, key, mask, key_row, mask_row, rows, at, size, limit, SCALING, MASKED, True, D)
        few = tl.where((some >= 0)[None, :], few - base[:, None], UNSEEN)
        lost += tl.sum(tl.exp2(few), 1)
        lost_products += tl.sum(tl.exp2(few) * few, 1)
    tl.store(normaliser + (entry * heads + head) * size + rows, base, mask=there)
    place = (entry * all_heads + first + head) * size + rows
    layer = tl.num_programs(2) * all_heads * size
    information = tl.log2(whole) - tl.sum(products, 1) / whole
    tl.store(found + place, tl.exp2(highest - base), mask=there)
    tl.store(found + layer + place, tl.exp2(tl.max(highest_ordinary, 1) - base), mask=there)
    tl.store(found + 2 * layer + place, information * TO_NATS, mask=there)
    tl.store(found + 3 * layer + place, (information + lost_products) * TO_NATS, mask=there)
    tl.store(found + 4 * layer + place, 1.0 - lost, mask=there)
    for near in tl.static_range(3):
        target = rows + (-1 if near == 1 else near // 2)  # itself, the previous, the next
        inside = there & (target >= 0) & (target < limit)
        keys = tl.load(key + target[:, None] * key_row + inner[None, :], mask=inside[:, None], other=0.0)
        score = tl.sum(asking.to(tl.float32) * keys.to(tl.float32), 1) * SCALING
        if MASKED:
            added = tl.load(mask + rows * mask_row + target, mask=inside, other=UNSEEN).to(tl.float32)
            score += tl.maximum(added, UNSEEN * TO_NATS) / TO_NATS
        tl.store(found + (5 + near) * layer + place, tl.where(inside, tl.exp2(score - base), 0.0), mask=there)
    group = tl.arange(0, 16)[:, None]
    counted = tl.load(sources + (entry * size + rows[None, :]) * 16 + group, mask=there[None, :], other=0.0)
    at = by_source + ((entry * heads + head) * blocks + block) * (32 * F)
    tl.store(at + group * (2 * F) + wide, tl.dot(counted, sides / whole[:, None], input_precision="tf32x3"))


@triton.jit(do_not_specialize=["first"])
def pair_sums(
    query, key, mask, query_batch, query_head, query_row, key_batch, key_head, key_row, mask_batch, mask_row,
    limits, size, heads, all_heads, first, normaliser, marks, all_marks, weights, found, blocks,
    SCALING: tl.constexpr, MASKED: tl.constexpr, INSIDE: tl.constexpr, D: tl.constexpr, M: tl.constexpr,
    LISTED: tl.constexpr, WEIGHED: tl.constexpr, SUMS: tl.constexpr, RAISED: tl.constexpr,
):
    """Of a head's map: attention over marked pairs, and times weights over all pairs."""
    head, entry = tl.program_id(0), tl.program_id(1)
    limit = tl.load(limits + entry)
    places = tl.arange(0, M)
    query += entry * query_batch + head * query_head
    key += entry * key_batch + head * key_head
    mask += entry * mask_batch
    weights += entry * WEIGHED * size * size
    normaliser += (entry * heads + head) * size
    bit = 2 * tl.arange(0, M // 8)[None, :, None, None] + tl.arange(0, 2)[None, None, None, :]
    of_threads = places[:, None] * 4 + tl.arange(0, 4)[None, :]
    listed, weighed = (), ()
    for _ in tl.static_range(LISTED):
        listed = listed + (tl.zeros([M // 16, 8, 4], tl.float32),)
    for _ in tl.static_range(WEIGHED):
        weighed = weighed + (tl.zeros([M, M], tl.float32),)
    for block in range(tl.cdiv(limit, M)):
        rows = block * M + places
        there = rows < size
        asking = tl.load(query + rows[:, None] * query_row + tl.arange(0, D)[None, :], mask=there[:, None], other=0.0)
        # Weights are raised by a power of 2, so that small ones are not lost in half precision.
        base = tl.load(normaliser + rows, mask=there, other=-UNSEEN) - RAISED
        for step in range(tl.cdiv(limit, M)):
            columns = step * M + places
            tile = (entry * blocks + block) * blocks + step
            bits = tl.load(all_marks + tile)
            needed = True if WEIGHED > 0 else bits != 0
            if needed:
                scores = _scores(
                    asking, key, mask, key_row, mask_row, rows, columns, size, limit, SCALING, MASKED, INSIDE, D
                )
                attention = tl.exp2(scores - base[:, None])
                own = _by_thread(attention, M)
                sums = ()
                for two in tl.static_range(LISTED // 2):
                    one, other = listed[2 * two], listed[2 * two + 1]
                    if ((bits >> (2 * two)) & 3) != 0:
                        word = tl.load(marks + (tile * (LISTED // 2) + two) * (4 * M) + of_threads)[:, None, :, None]
                        if ((bits >> (2 * two)) & 1) != 0:
                            one += _total_of_thread(tl.where(((word >> bit) & 1) != 0, own, 0.0), M)
                        if ((bits >> (2 * two)) & 2) != 0:
                            other += _total_of_thread(tl.where(((word >> (bit + 16)) & 1) != 0, own, 0.0), M)
                    sums = sums + (one, other)
                listed = sums
                if WEIGHED > 0:
                    halves = attention.to(tl.float16)
                    sums = ()
                    for number in tl.static_range(WEIGHED):
                        at = weights + (number * size + rows[:, None]) * size + columns[None, :]
                        inside = there[:, None] & (columns[None, :] < size)
                        weight = tl.load(at) if INSIDE else tl.load(at, mask=inside, other=0.0)
                        # The sum of products, row by row, is the diagonal of a product of matrices.
                        sums = sums + (tl.dot(halves, tl.trans(weight), weighed[number]),)
                    weighed = sums
    at = found + (entry * all_heads + first + head) * SUMS
    lowered = tl.exp2(-1.0 * RAISED)
    for number in tl.static_range(LISTED):
        tl.store(at + number, tl.sum(listed[number]) * lowered)
    for number in tl.static_range(WEIGHED):
        own = tl.where(places[:, None] == places[None, :], weighed[number], 0.0)
        tl.store(at + LISTED + number, tl.sum(own) * lowered)


@triton.jit
def _best(between, absent, places, itself, M: tl.constexpr):
    """Along each row, in one number: the highest weight above, the word below, the higher the earlier; < 0 for none."""
    between += absent[None, :]
    if itself:
        between = tl.where(places[:, None] == places[None, :], -1.0, between)
    return tl.max((between.to(tl.int32, bitcast=True) & -M) | (M - 1 - places[None, :]), 1)


@triton.jit
def strongest_words(
    query, key, mask, query_batch, query_head, query_row, key_batch, key_head, key_row, mask_batch, mask_row,
    limits, size, heads, normaliser, start, count, first_word, word_count, word, share,
    attending, attended, words, blocks,
    SCALING: tl.constexpr, MASKED: tl.constexpr, D: tl.constexpr, M: tl.constexpr,
):
    """Between the words of two blocks, in all heads: the strongest target of each word, and its strongest source."""
    pair, entry = tl.program_id(0), tl.program_id(1)
    places, inner = tl.arange(0, M), tl.arange(0, D)
    block, other = pair // blocks, pair % blocks
    source, target = entry * blocks + block, entry * blocks + other
    first_source, first_target = tl.load(first_word + source), tl.load(first_word + target)
    # What stands beyond a block is looked at and counts for nothing: of_rows and of_columns have no word for it.
    rows = tl.minimum(tl.load(start + source) + places, size - 1)
    columns = tl.minimum(tl.load(start + target) + places, size - 1)
    from_there, to_there = places < tl.load(count + source), places < tl.load(count + target)
    from_words, to_words = first_source + places, first_target + places
    from_words_there, to_words_there = tl.load(word_count + source), tl.load(word_count + target)
    from_known, to_known = places < from_words_there, places < to_words_there
    row_word = tl.where(from_there, tl.load(word + entry * size + rows), -1)
    column_word = tl.where(to_there, tl.load(word + entry * size + columns), -1)
    part = tl.load(share + entry * words + from_words, mask=from_known, other=0.0)
    of_rows = tl.where(row_word[None, :] == from_words[:, None], part[:, None], 0.0).to(tl.float16)
    of_columns = (column_word[:, None] == to_words[None, :]).to(tl.float16)
    no_row, no_column = tl.where(from_known, 0.0, -1.0), tl.where(to_known, 0.0, -1.0)
    mask += entry * mask_batch
    for head in range(tl.where((from_words_there > 0) & (to_words_there > 0), heads, 0)):
        asked = query + entry * query_batch + head * query_head
        asking = tl.load(asked + rows[:, None] * query_row + inner[None, :])
        base = tl.load(normaliser + (entry * heads + head) * size + rows)
        keys = key + entry * key_batch + head * key_head
        scores = _scores(asking, keys, mask, key_row, mask_row, rows, columns, size, size, SCALING, MASKED, True, D)
        summed = tl.dot(tl.exp2(scores - base[:, None]).to(tl.float16), of_columns).to(tl.float16)
        at = (entry * heads + head) * blocks
        best = _best(tl.dot(of_rows, summed), no_column, places, block == other, M)
        tl.store(attending + (at + other) * words + from_words, best, mask=from_known)
        best = _best(tl.dot(tl.trans(summed), tl.trans(of_rows)), no_row, places, block == other, M)
        tl.store(attended + (at + block) * words + to_words, best, mask=to_known)


@triton.jit(do_not_specialize=["first"])
def first_of_strongest(best, first_word, found, all_heads, first, words, blocks, M: tl.constexpr, N: tl.constexpr):
    """Of the strongest words of all blocks the strongest, and of those that are alike the first; -1 for none."""
    some, head, entry = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    heads, entries = tl.num_programs(1), tl.num_programs(2)
    asking = some * N + tl.arange(0, N)
    there = asking < words
    for direction in tl.static_range(2):
        highest = tl.full([N], -1, tl.int32)
        word = tl.full([N], -1, tl.int32)
        at = best + ((direction * entries + entry) * heads + head) * blocks * words + asking
        for block in range(blocks):
            found_here = tl.load(at + block * words, mask=there, other=-1)
            higher = (found_here >= 0) & ((found_here & -M) > highest)
            highest = tl.where(higher, found_here & -M, highest)
            word = tl.where(higher, tl.load(first_word + entry * blocks + block) + M - 1 - (found_here & (M - 1)), word)
        at = found + ((entry * all_heads + first + head) * 2 + direction) * words + asking
        tl.store(at, word.to(found.dtype.element_ty), mask=there)
