"""Triton kernels for attention statistics: each program computes tiles of attention in registers; see `launch`.

Scores are recomputed from queries and keys, as in fused attention; only a few numbers per row are written. Logarithms
are base 2 here. `length` is the number of tokens of an input that are visible to all. Communication between threads is
left to the end: of a tile of 64 columns, a thread holds columns 8 k + 2 t + c of each of its rows, for one t of 4, and
`_split_by_thread` puts k and c on axes of their own, along which sums need no communication.
"""
# Triton's compiled functions have no types a checker knows, and arguments that belong together share a line.
# pyright: basic, reportMissingImports=false
# fmt: off

from __future__ import annotations

import triton
import triton.language as tl

MASKED_SCORE = tl.constexpr(-1e30)
"""Score of invisible tokens: very low but finite, so that 0 times it is 0."""
NATS_PER_BIT = tl.constexpr(0.6931471805599453)
SPECIAL_CHUNK = tl.constexpr(16)
"""Special tokens processed at once: the smallest size of a tensor-core product."""
PERMUTATION_FACTOR = tl.constexpr(37)
PERMUTATION_INVERSE = tl.constexpr(45)
"""37 times 45 is 1 modulo 64, the size of a tile."""
PERMUTATION_SHIFT = tl.constexpr(11)


@triton.jit
def _scores(
    queries, key, mask, key_row, mask_row, rows, columns, size, length, SCALING, MASKED, IN_BOUNDS, D: tl.constexpr,
):
    """The scores of a tile, (row, column). IN_BOUNDS: all columns exist and are visible unless masked."""
    pointers = key + columns[None, :] * key_row + tl.arange(0, D)[:, None]
    keys = tl.load(pointers) if IN_BOUNDS else tl.load(pointers, mask=columns[None, :] < size, other=0.0)
    scores = tl.dot(queries, keys) * SCALING
    if MASKED:
        in_range = (rows[:, None] < size) & (columns[None, :] < size)
        added = tl.load(mask + rows[:, None] * mask_row + columns[None, :], mask=in_range, other=MASKED_SCORE)
        added = added.to(tl.float32)
        scores += tl.maximum(added, MASKED_SCORE * NATS_PER_BIT) / NATS_PER_BIT
    elif not IN_BOUNDS:
        scores = tl.where(columns[None, :] < length, scores, MASKED_SCORE)
    return scores


@triton.jit
def _split_by_thread(values, M: tl.constexpr):
    """(row, k, t, c) from (row, column), without moving data between threads."""
    return tl.reshape(values, [M, M // 8, 4, 2])


@triton.jit
def _thread_sum(values):
    """(row, t): the sum of each thread's values in a row."""
    return tl.sum(tl.sum(values, 3), 1)


@triton.jit
def _thread_max(values):
    """(row, t): the maximum of each thread's values in a row."""
    return tl.max(tl.max(values, 3), 1)


@triton.jit
def _thread_total(values, M: tl.constexpr):
    """(warp, row, t): the sum of all values of each thread."""
    return tl.sum(tl.sum(tl.sum(tl.reshape(values, [M // 16, 2, 8, M // 8, 4, 2]), 5), 3), 1)


@triton.jit(do_not_specialize=["first_head"])
def row_sums_kernel(
    query, key, mask, query_batch, query_head, query_row, key_batch, key_head, key_row, mask_batch, mask_row,
    lengths, size, heads, all_heads, first_head, target_features, special_positions, tile_has_special, source_weights,
    log_normaliser, out, source_sums, n_special,
    SCALING: tl.constexpr, MASKED: tl.constexpr, IN_BOUNDS: tl.constexpr,
    D: tl.constexpr, M: tl.constexpr, F: tl.constexpr,
):
    """For the rows of one tile of a head: the logarithm of the softmax's sum, and everything `RowStatistics` has."""
    head, row_tile, batch_row = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    n_tiles, length = tl.num_programs(1), tl.load(lengths + batch_row)
    offsets, dimensions = tl.arange(0, M), tl.arange(0, D)
    rows = row_tile * M + offsets
    row_mask = rows < size
    query += batch_row * query_batch + head * query_head
    key += batch_row * key_batch + head * key_head
    mask += batch_row * mask_batch
    target_features += batch_row * size * (5 * F)
    queries = tl.load(query + rows[:, None] * query_row + dimensions[None, :], mask=row_mask[:, None], other=0.0)
    feature_offsets = tl.arange(0, 2 * F)[None, :]
    max_score = tl.full([M], MASKED_SCORE, tl.float32)
    max_non_special = tl.full([M, 4], MASKED_SCORE, tl.float32)
    total = tl.zeros([M, 4], tl.float32)
    products = tl.zeros([M, 4], tl.float32)
    feature_sums = tl.zeros([M, 2 * F], tl.float32)
    half_weights = tl.zeros([M, M], tl.float16)
    for step in range(1, n_tiles + 1):
        column_tile = (row_tile + step) % n_tiles
        columns = column_tile * M + offsets
        scores = _scores(
            queries, key, mask, key_row, mask_row, rows, columns, size, length, SCALING, MASKED, IN_BOUNDS, D,
        )
        tile_max = _thread_max(_split_by_thread(scores, M))
        # As in fused attention: the sums so far are rescaled to the highest score known by now.
        new_max = tl.maximum(max_score, tl.max(tile_max, 1))
        rescale = tl.exp2(max_score - new_max)
        log_weights = scores - new_max[:, None]
        weights = tl.exp2(log_weights)
        products = (products + (max_score - new_max)[:, None] * total) * rescale[:, None]
        products += _thread_sum(_split_by_thread(weights * log_weights, M))
        total = total * rescale[:, None] + _thread_sum(_split_by_thread(weights, M))
        max_score = new_max
        if tl.load(tile_has_special + batch_row * n_tiles + column_tile) != 0:
            non_special = tl.load(target_features + columns * (5 * F) + F + 4, mask=columns < size, other=0.0)
            non_special = _split_by_thread(tl.broadcast_to(non_special[None, :], [M, M]), M)
            tile_max = _thread_max(tl.where(non_special > 0, _split_by_thread(scores, M), MASKED_SCORE))
        max_non_special = tl.maximum(max_non_special, tile_max)
        half_weights = weights.to(tl.float16)
        # Targets before a row are summed in the first half of the features, targets after it in the second.
        half = tl.where(column_tile > row_tile, 0, F)
        pointers = target_features + columns[:, None] * (5 * F) + half + feature_offsets
        features = tl.load(pointers) if IN_BOUNDS else tl.load(pointers, mask=columns[:, None] < size, other=0.0)
        feature_sums = tl.dot(half_weights, features, feature_sums * rescale[:, None])
    # The tile on the diagonal came last and was counted as before the row: targets after the row are moved over.
    after = tl.where(offsets[None, :] > offsets[:, None], half_weights, 0.0)
    moved_pointers = target_features + rows[:, None] * (5 * F) + 3 * F + feature_offsets
    moved = tl.load(moved_pointers, mask=row_mask[:, None], other=0.0)
    feature_sums = tl.dot(after, moved, feature_sums)
    row_total = tl.sum(total, 1)
    log_total = max_score + tl.log2(row_total)
    special_mass = tl.zeros([M], tl.float32)
    special_products = tl.zeros([M], tl.float32)
    for start in range(0, n_special, SPECIAL_CHUNK):
        positions = tl.load(special_positions + batch_row * n_special + start + tl.arange(0, SPECIAL_CHUNK))
        special_columns = tl.maximum(positions, 0)
        special_scores = _scores(
            queries, key, mask, key_row, mask_row, rows, special_columns, size, length, SCALING, MASKED, True, D,
        )
        special_scores = tl.where((positions >= 0)[None, :], special_scores - log_total[:, None], MASKED_SCORE)
        special_mass += tl.sum(tl.exp2(special_scores), 1)
        special_products += tl.sum(tl.exp2(special_scores) * special_scores, 1)
    tl.store(log_normaliser + (batch_row * heads + head) * size + rows, log_total, mask=row_mask)
    out_rows = (batch_row * all_heads + first_head + head) * size + rows
    plane = tl.num_programs(2) * all_heads * size
    entropy = tl.log2(row_total) - tl.sum(products, 1) / row_total
    tl.store(out + out_rows, tl.exp2(max_score - log_total), mask=row_mask)
    tl.store(out + plane + out_rows, tl.exp2(tl.max(max_non_special, 1) - log_total), mask=row_mask)
    tl.store(out + 2 * plane + out_rows, entropy * NATS_PER_BIT, mask=row_mask)
    tl.store(out + 3 * plane + out_rows, (entropy + special_products) * NATS_PER_BIT, mask=row_mask)
    tl.store(out + 4 * plane + out_rows, 1.0 - special_mass, mask=row_mask)
    for neighbour in tl.static_range(3):
        target = rows + (-1 if neighbour == 1 else neighbour // 2)  # the token itself, the previous, the next
        in_range = row_mask & (target >= 0) & (target < length)
        keys = tl.load(key + target[:, None] * key_row + dimensions[None, :], mask=in_range[:, None], other=0.0)
        score = tl.sum(queries.to(tl.float32) * keys.to(tl.float32), 1) * SCALING
        if MASKED:
            added = tl.load(mask + rows * mask_row + target, mask=in_range, other=MASKED_SCORE).to(tl.float32)
            score += tl.maximum(added, MASKED_SCORE * NATS_PER_BIT) / NATS_PER_BIT
        weight = tl.where(in_range, tl.exp2(score - log_total), 0.0)
        tl.store(out + (5 + neighbour) * plane + out_rows, weight, mask=row_mask)
    source_sum = tl.arange(0, 16)[:, None]
    weight_pointers = source_weights + (batch_row * size + rows[None, :]) * 16 + source_sum
    row_weights = tl.load(weight_pointers, mask=row_mask[None, :], other=0.0)
    sums = tl.dot(row_weights, feature_sums / row_total[:, None], input_precision="tf32x3")
    sum_pointers = source_sums + ((batch_row * heads + head) * n_tiles + row_tile) * (32 * F)
    tl.store(sum_pointers + source_sum * (2 * F) + feature_offsets, sums)


@triton.jit(do_not_specialize=["first_head"])
def pair_sums_kernel(
    query, key, mask, query_batch, query_head, query_row, key_batch, key_head, key_row, mask_batch, mask_row,
    lengths, size, heads, all_heads, first_head, log_normaliser, tile_bits, tile_sums, weights, out, n_tiles,
    SCALING: tl.constexpr, MASKED: tl.constexpr, IN_BOUNDS: tl.constexpr, D: tl.constexpr, M: tl.constexpr,
    N_LISTED: tl.constexpr, N_WEIGHTED: tl.constexpr, N_SUMS: tl.constexpr, SCALE_EXPONENT: tl.constexpr,
):
    """For a head: attention summed over listed pairs, and over all pairs times weights."""
    head, batch_row = tl.program_id(0), tl.program_id(1)
    length = tl.load(lengths + batch_row)
    offsets = tl.arange(0, M)
    query += batch_row * query_batch + head * query_head
    key += batch_row * key_batch + head * key_head
    mask += batch_row * mask_batch
    weights += batch_row * N_WEIGHTED * size * size
    log_normaliser += (batch_row * heads + head) * size
    bit = 2 * tl.arange(0, M // 8)[None, :, None, None] + tl.arange(0, 2)[None, None, None, :]
    thread_offsets = offsets[:, None] * 4 + tl.arange(0, 4)[None, :]
    listed, weighted = (), ()
    for _ in tl.static_range(N_LISTED):
        listed = listed + (tl.zeros([M // 16, 8, 4], tl.float32),)
    for _ in tl.static_range(N_WEIGHTED):
        weighted = weighted + (tl.zeros([M, M], tl.float32),)
    for row_tile in range(tl.cdiv(length, M)):
        rows = row_tile * M + offsets
        row_mask = rows < size
        pointers = query + rows[:, None] * query_row + tl.arange(0, D)[None, :]
        queries = tl.load(pointers, mask=row_mask[:, None], other=0.0)
        # Weights are scaled by a power of 2, so that small ones are not lost in half precision.
        log_total = tl.load(log_normaliser + rows, mask=row_mask, other=-MASKED_SCORE) - SCALE_EXPONENT
        for column_tile in range(tl.cdiv(length, M)):
            columns = column_tile * M + offsets
            tile = (batch_row * n_tiles + row_tile) * n_tiles + column_tile
            sum_bits = tl.load(tile_sums + tile)
            needed = True if N_WEIGHTED > 0 else sum_bits != 0
            if needed:
                scores = _scores(
                    queries, key, mask, key_row, mask_row, rows, columns, size, length, SCALING, MASKED, IN_BOUNDS, D
                )
                attention = tl.exp2(scores - log_total[:, None])
                by_thread = _split_by_thread(attention, M)
                sums = ()
                for two in tl.static_range(N_LISTED // 2):
                    lower, upper = listed[2 * two], listed[2 * two + 1]
                    if ((sum_bits >> (2 * two)) & 3) != 0:
                        word = tl.load(tile_bits + (tile * (N_LISTED // 2) + two) * (4 * M) + thread_offsets)
                        word = word[:, None, :, None]
                        if ((sum_bits >> (2 * two)) & 1) != 0:
                            lower += _thread_total(tl.where(((word >> bit) & 1) != 0, by_thread, 0.0), M)
                        if ((sum_bits >> (2 * two)) & 2) != 0:
                            upper += _thread_total(tl.where(((word >> (bit + 16)) & 1) != 0, by_thread, 0.0), M)
                    sums = sums + (lower, upper)
                listed = sums
                if N_WEIGHTED > 0:
                    half_attention = attention.to(tl.float16)
                    sums = ()
                    for index in tl.static_range(N_WEIGHTED):
                        cells = weights + (index * size + rows[:, None]) * size + columns[None, :]
                        in_range = row_mask[:, None] & (columns[None, :] < size)
                        weight = tl.load(cells) if IN_BOUNDS else tl.load(cells, mask=in_range, other=0.0)
                        # The sum of products within a row is the diagonal of a matrix product.
                        sums = sums + (tl.dot(half_attention, tl.trans(weight), weighted[index]),)
                    weighted = sums
    head_out = out + (batch_row * all_heads + first_head + head) * N_SUMS
    unscale = tl.exp2(-1.0 * SCALE_EXPONENT)
    for index in tl.static_range(N_LISTED):
        tl.store(head_out + index, tl.sum(listed[index]) * unscale)
    for index in tl.static_range(N_WEIGHTED):
        diagonal = tl.where(offsets[:, None] == offsets[None, :], weighted[index], 0.0)
        tl.store(head_out + N_LISTED + index, tl.sum(diagonal) * unscale)


@triton.jit
def _strongest(weights, penalty, indices, words, same_tile, M: tl.constexpr):
    """The maximum of each row as one integer: the weight in the upper bits, the permuted index below; < 0 if none.

    The permutation differs from word to word, so that no position is preferred among equal weights.
    """
    weights += penalty[None, :]
    if same_tile:
        weights = tl.where(indices[:, None] == indices[None, :], -1.0, weights)
    permuted = (indices[None, :] * PERMUTATION_FACTOR + words[:, None] * PERMUTATION_SHIFT) & (M - 1)
    return tl.max((weights.to(tl.int32, bitcast=True) & -M) | permuted, 1)


@triton.jit
def strongest_words_kernel(
    query, key, mask, query_batch, query_head, query_row, key_batch, key_head, key_row, mask_batch, mask_row,
    lengths, size, heads, log_normaliser, first_token, n_tokens, first_word, n_words, word_ids, token_weights,
    strongest_targets, strongest_sources, max_words, n_tiles,
    SCALING: tl.constexpr, MASKED: tl.constexpr, D: tl.constexpr, M: tl.constexpr,
):
    """Between the words of two tiles, in all heads: the strongest target of each word, and its strongest source."""
    tile_pair, batch_row = tl.program_id(0), tl.program_id(1)
    offsets, dimensions = tl.arange(0, M), tl.arange(0, D)
    row_tile, column_tile = tile_pair // n_tiles, tile_pair % n_tiles
    source, target = batch_row * n_tiles + row_tile, batch_row * n_tiles + column_tile
    first_source, first_target = tl.load(first_word + source), tl.load(first_word + target)
    # Tokens beyond a tile are computed and ignored: row_pooling and column_pooling have no word for them.
    rows = tl.minimum(tl.load(first_token + source) + offsets, size - 1)
    columns = tl.minimum(tl.load(first_token + target) + offsets, size - 1)
    row_mask, column_mask = offsets < tl.load(n_tokens + source), offsets < tl.load(n_tokens + target)
    source_words, target_words = first_source + offsets, first_target + offsets
    n_sources, n_targets = tl.load(n_words + source), tl.load(n_words + target)
    source_mask, target_mask = offsets < n_sources, offsets < n_targets
    row_word = tl.where(row_mask, tl.load(word_ids + batch_row * size + rows), -1)
    column_word = tl.where(column_mask, tl.load(word_ids + batch_row * size + columns), -1)
    token_weight = tl.load(token_weights + batch_row * max_words + source_words, mask=source_mask, other=0.0)
    row_pooling = tl.where(row_word[None, :] == source_words[:, None], token_weight[:, None], 0.0).to(tl.float16)
    column_pooling = (column_word[:, None] == target_words[None, :]).to(tl.float16)
    source_penalty, target_penalty = tl.where(source_mask, 0.0, -1.0), tl.where(target_mask, 0.0, -1.0)
    mask += batch_row * mask_batch
    for head in range(tl.where((n_sources > 0) & (n_targets > 0), heads, 0)):
        head_query = query + batch_row * query_batch + head * query_head
        queries = tl.load(head_query + rows[:, None] * query_row + dimensions[None, :])
        log_total = tl.load(log_normaliser + (batch_row * heads + head) * size + rows)
        head_key = key + batch_row * key_batch + head * key_head
        scores = _scores(
            queries, head_key, mask, key_row, mask_row, rows, columns, size, size, SCALING, MASKED, True, D,
        )
        summed = tl.dot(tl.exp2(scores - log_total[:, None]).to(tl.float16), column_pooling).to(tl.float16)
        first_tile = (batch_row * heads + head) * n_tiles
        pooled = tl.dot(row_pooling, summed)
        strongest = _strongest(pooled, target_penalty, offsets, source_words, row_tile == column_tile, M)
        tl.store(strongest_targets + (first_tile + column_tile) * max_words + source_words, strongest, mask=source_mask)
        pooled = tl.dot(tl.trans(summed), tl.trans(row_pooling))
        strongest = _strongest(pooled, source_penalty, offsets, target_words, row_tile == column_tile, M)
        tl.store(strongest_sources + (first_tile + row_tile) * max_words + target_words, strongest, mask=target_mask)


@triton.jit(do_not_specialize=["first_head"])
def merge_strongest_kernel(
    buffer, first_word, out, all_heads, first_head, max_words, n_tiles, M: tl.constexpr, N: tl.constexpr,
):
    """The strongest word over all tiles, a pseudo-random one of equally strong words; -1 if there is none."""
    chunk, head, batch_row = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    heads, n_rows = tl.num_programs(1), tl.num_programs(2)
    words = chunk * N + tl.arange(0, N)
    word_mask = words < max_words
    for direction in tl.static_range(2):
        highest = tl.full([N], -1, tl.int32)
        strongest = tl.full([N], -1, tl.int32)
        priority = tl.full([N], -1, tl.int32)
        pointers = buffer + ((direction * n_rows + batch_row) * heads + head) * n_tiles * max_words + words
        for tile in range(n_tiles):
            candidate = tl.load(pointers + tile * max_words, mask=word_mask, other=-1)
            weight = candidate & -M
            tile_priority = ((words * 7919 + tile * 104729) * 60493 >> 8) & 0xFFFF
            is_higher = (weight > highest) | ((weight == highest) & (tile_priority > priority))
            is_higher = is_higher & (candidate >= 0)
            highest, priority = tl.where(is_higher, weight, highest), tl.where(is_higher, tile_priority, priority)
            index = (((candidate & (M - 1)) - words * PERMUTATION_SHIFT) * PERMUTATION_INVERSE) & (M - 1)
            word = tl.load(first_word + batch_row * n_tiles + tile) + index
            strongest = tl.where(is_higher, word, strongest)
        pointers = out + ((batch_row * all_heads + first_head + head) * 2 + direction) * max_words + words
        tl.store(pointers, strongest.to(out.dtype.element_ty), mask=word_mask)
