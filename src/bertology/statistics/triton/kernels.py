"""Triton kernels for attention statistics: each program computes tiles of attention in registers; see `launch`.

Scores are recomputed from queries and keys, as in the backward pass of fused attention: the logarithm of the softmax's
sum is known, so that weights are final at once, and only a few numbers per row are written. Logarithms are base 2 here,
and weights are scaled by 2 to the power of SCALE_EXPONENT, so that small ones are not lost in half precision.

Communication between threads is left to the end: of a tile of 64 columns, a thread holds columns 8 k + 2 t + c of each
of its rows, for one t of 4, and `_split_by_thread` puts k and c on axes of their own, along which sums need none.
"""
# Triton's compiled functions have no types a checker knows, and arguments that belong together share a line.
# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
# pyright: reportGeneralTypeIssues=false, reportOperatorIssue=false
# fmt: off

from __future__ import annotations

import triton
import triton.language as tl

MASKED_SCORE = tl.constexpr(-1e30)
"""Score of invisible tokens: very low but finite, so that 0 times it is 0."""
NATS_PER_BIT = tl.constexpr(0.6931471805599453)
SCALE_EXPONENT, UNSCALE = tl.constexpr(8), tl.constexpr(2.0**-8)
NON_SPECIAL = tl.constexpr(4)
"""Index of a target feature; see `launch.KernelFeatures`."""
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
def _thread_sum(values, M: tl.constexpr):
    """(row, t): the sum of each thread's values in a row."""
    return tl.sum(tl.sum(_split_by_thread(values, M), 3), 1)


@triton.jit
def _thread_max(values, M: tl.constexpr):
    """(row, t): the maximum of each thread's values in a row."""
    return tl.max(tl.max(_split_by_thread(values, M), 3), 1)


@triton.jit
def _thread_total(values, M: tl.constexpr):
    """(warp, row, t): the sum of all values of each thread."""
    return tl.sum(tl.sum(tl.sum(tl.reshape(values, [M // 16, 2, 8, M // 8, 4, 2]), 5), 3), 1)


@triton.jit
def log_normaliser_kernel(
    query, key, mask, query_batch, query_head, query_row, key_batch, key_head, key_row, mask_batch, mask_row,
    lengths, size, heads, log_normaliser,
    SCALING: tl.constexpr, MASKED: tl.constexpr, D: tl.constexpr, M: tl.constexpr, IN_BOUNDS: tl.constexpr,
):
    """The natural logarithm of the softmax's sum for the rows of one tile of a head."""
    head, row_tile, batch_row = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    length = tl.load(lengths + batch_row)
    offsets, dimensions = tl.arange(0, M), tl.arange(0, D)
    rows = row_tile * M + offsets
    query += batch_row * query_batch + head * query_head
    key += batch_row * key_batch + head * key_head
    mask += batch_row * mask_batch
    queries = tl.load(query + rows[:, None] * query_row + dimensions[None, :], mask=rows[:, None] < size, other=0.0)
    highest = tl.full([M], MASKED_SCORE, tl.float32)
    total = tl.zeros([M, 4], tl.float32)
    for start in range(0, length, M):
        scores = _scores(
            queries, key, mask, key_row, mask_row, rows, start + offsets, size, length, SCALING, MASKED, IN_BOUNDS, D,
        )
        new_highest = tl.maximum(highest, tl.max(scores, 1))
        weights = tl.exp2(scores - new_highest[:, None])
        total = total * tl.exp2(highest - new_highest)[:, None] + _thread_sum(weights, M)
        highest = new_highest
    out = log_normaliser + (batch_row * heads + head) * size + rows
    tl.store(out, (highest + tl.log2(tl.sum(total, 1))) * NATS_PER_BIT, mask=rows < size)


@triton.jit(do_not_specialize=["first_head"])
def row_statistics_kernel(
    query, key, mask, query_batch, query_head, query_row, key_batch, key_head, key_row, mask_batch, mask_row,
    lengths, size, heads, all_heads, first_head, log_normaliser, target_features, special_tiles, source_weights,
    out, source_sums,
    SCALING: tl.constexpr, MASKED: tl.constexpr, D: tl.constexpr, M: tl.constexpr, IN_BOUNDS: tl.constexpr,
    F: tl.constexpr,
):
    """For the rows of one tile of a head: everything `RowStatistics` has."""
    head, row_tile, batch_row = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    n_tiles, length = tl.num_programs(1), tl.load(lengths + batch_row)
    offsets, dimensions = tl.arange(0, M), tl.arange(0, D)
    rows = row_tile * M + offsets
    row_mask = rows < length
    query += batch_row * query_batch + head * query_head
    key += batch_row * key_batch + head * key_head
    mask += batch_row * mask_batch
    target_features += batch_row * size * (4 * F)
    queries = tl.load(query + rows[:, None] * query_row + dimensions[None, :], mask=row_mask[:, None], other=0.0)
    log_total = tl.load(log_normaliser + (batch_row * heads + head) * size + rows, mask=row_mask, other=0.0)
    log_total = tl.where(row_mask, log_total / NATS_PER_BIT - SCALE_EXPONENT, -MASKED_SCORE)
    features = tl.arange(0, F)[None, :]
    products = tl.zeros([M, 4], tl.float32)
    highest = tl.full([M, 4], MASKED_SCORE, tl.float32)
    special_products = tl.zeros([M, 4], tl.float32)
    special_mass = tl.zeros([M, 4], tl.float32)
    highest_non_special = tl.full([M, 4], MASKED_SCORE, tl.float32)
    itself = tl.zeros([M, 4], tl.float32)
    previous = tl.zeros([M, 4], tl.float32)
    following = tl.zeros([M, 4], tl.float32)
    feature_sums = tl.zeros([M, F], tl.float32)
    half_weights = tl.zeros([M, M], tl.float16)
    tile_bits = tl.load(special_tiles + batch_row)
    used_tiles = tl.cdiv(length, M)
    # The tile on the diagonal comes last.
    for step in range(1, tl.where(row_tile < used_tiles, used_tiles, 0) + 1):
        column_tile = (row_tile + step) % used_tiles
        columns = column_tile * M + offsets
        scores = _scores(
            queries, key, mask, key_row, mask_row, rows, columns, size, length, SCALING, MASKED, IN_BOUNDS, D,
        )
        log_weights = scores - log_total[:, None]
        weights = tl.exp2(log_weights)
        products += _thread_sum(weights * log_weights, M)
        tile_highest = _thread_max(log_weights, M)
        highest = tl.maximum(highest, tile_highest)
        if ((tile_bits >> column_tile) & 1) != 0:
            non_special = tl.load(target_features + columns * (4 * F) + NON_SPECIAL, mask=columns < size, other=0.0)
            is_special = tl.broadcast_to(non_special[None, :], [M, M]) == 0
            tile_highest = _thread_max(tl.where(is_special, MASKED_SCORE, log_weights), M)
            special_weights = tl.where(is_special, weights, 0.0)
            special_products += _thread_sum(special_weights * log_weights, M)
            special_mass += _thread_sum(special_weights, M)
        highest_non_special = tl.maximum(highest_non_special, tile_highest)
        if (column_tile - row_tile <= 1) & (row_tile - column_tile <= 1):
            distance = columns[None, :] - rows[:, None]
            itself += _thread_sum(tl.where(distance == 0, weights, 0.0), M)
            previous += _thread_sum(tl.where(distance == -1, weights, 0.0), M)
            following += _thread_sum(tl.where(distance == 1, weights, 0.0), M)
        half_weights = weights.to(tl.float16)
        # Features after the kinds are signed: targets before the row count as negative. On the diagonal they are 0.
        sign = tl.where(column_tile > row_tile, 0, tl.where(column_tile < row_tile, 1, 2))
        pointers = target_features + columns[:, None] * (4 * F) + sign * F + features
        tile_features = tl.load(pointers) if IN_BOUNDS else tl.load(pointers, mask=columns[:, None] < size, other=0.0)
        feature_sums = tl.dot(half_weights, tile_features, feature_sums)
    is_after = offsets[None, :] > offsets[:, None]
    signed_weights = tl.where(is_after, half_weights, -half_weights)
    pointers = target_features + rows[:, None] * (4 * F) + 3 * F + features
    feature_sums = tl.dot(signed_weights, tl.load(pointers, mask=row_mask[:, None], other=0.0), feature_sums)
    source_sum = tl.arange(0, 16)[:, None]
    weight_pointers = source_weights + (batch_row * size + rows[None, :]) * 16 + source_sum
    row_weights = tl.load(weight_pointers, mask=row_mask[None, :], other=0.0)
    sums = tl.dot(row_weights, feature_sums * UNSCALE, input_precision="tf32x3")
    source_sums += ((batch_row * heads + head) * n_tiles + row_tile) * (16 * F)
    tl.store(source_sums + source_sum * F + features, sums)
    mass = tl.sum(special_mass, 1) * UNSCALE
    entropy = SCALE_EXPONENT - tl.sum(products, 1) * UNSCALE
    special_entropy = SCALE_EXPONENT * mass - tl.sum(special_products, 1) * UNSCALE
    out_rows = out + (batch_row * all_heads + first_head + head) * size + rows
    plane = tl.num_programs(2) * all_heads * size
    tl.store(out_rows, tl.exp2(tl.max(highest, 1)) * UNSCALE, mask=row_mask)
    tl.store(out_rows + plane, tl.exp2(tl.max(highest_non_special, 1)) * UNSCALE, mask=row_mask)
    tl.store(out_rows + 2 * plane, entropy * NATS_PER_BIT, mask=row_mask)
    tl.store(out_rows + 3 * plane, (entropy - special_entropy) * NATS_PER_BIT, mask=row_mask)
    tl.store(out_rows + 4 * plane, 1.0 - mass, mask=row_mask)
    tl.store(out_rows + 5 * plane, tl.sum(itself, 1) * UNSCALE, mask=row_mask)
    tl.store(out_rows + 6 * plane, tl.sum(previous, 1) * UNSCALE, mask=row_mask)
    tl.store(out_rows + 7 * plane, tl.sum(following, 1) * UNSCALE, mask=row_mask)


@triton.jit
def pair_sums_kernel(
    query, key, mask, query_batch, query_head, query_row, key_batch, key_head, key_row, mask_batch, mask_row,
    lengths, size, heads, log_normaliser, pair_bits, tile_sums, pair_weights, out,
    SCALING: tl.constexpr, MASKED: tl.constexpr, D: tl.constexpr, M: tl.constexpr, IN_BOUNDS: tl.constexpr,
    N_LISTED: tl.constexpr, N_WEIGHTED: tl.constexpr, STAGES: tl.constexpr,
):
    """For the rows of one tile of a head: attention summed over listed pairs, and over all pairs times weights."""
    head, row_tile, batch_row = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    n_tiles, length = tl.num_programs(1), tl.load(lengths + batch_row)
    offsets, dimensions = tl.arange(0, M), tl.arange(0, D)
    rows = row_tile * M + offsets
    row_mask = rows < length
    query += batch_row * query_batch + head * query_head
    key += batch_row * key_batch + head * key_head
    mask += batch_row * mask_batch
    pair_weights += batch_row * N_WEIGHTED * size * size
    queries = tl.load(query + rows[:, None] * query_row + dimensions[None, :], mask=row_mask[:, None], other=0.0)
    log_total = tl.load(log_normaliser + (batch_row * heads + head) * size + rows, mask=row_mask, other=0.0)
    log_total = tl.where(row_mask, log_total / NATS_PER_BIT, -MASKED_SCORE)
    bit = 2 * tl.arange(0, M // 8)[None, :, None, None] + tl.arange(0, 2)[None, None, None, :]
    thread_offsets = offsets[:, None] * 4 + tl.arange(0, 4)[None, :]
    listed, weighted = (), ()
    for _ in tl.static_range(N_LISTED):
        listed = listed + (tl.zeros([M // 16, 8, 4], tl.float32),)
    for _ in tl.static_range(N_WEIGHTED):
        weighted = weighted + (tl.zeros([M // 16, 8, 4], tl.float32),)
    used_tiles = tl.cdiv(length, M)
    # With an explicit number of stages, weights are fetched ahead like keys.
    for column_tile in tl.range(0, tl.where(row_tile < used_tiles, used_tiles, 0), num_stages=STAGES):
        columns = column_tile * M + offsets
        if N_LISTED > 0:
            tile = (batch_row * n_tiles + row_tile) * n_tiles + column_tile
            sum_bits = tl.load(tile_sums + tile)
            words = ()
            for two in tl.static_range(N_LISTED // 2):
                words = words + (tl.load(pair_bits + (tile * (N_LISTED // 2) + two) * (4 * M) + thread_offsets),)
        scores = _scores(
            queries, key, mask, key_row, mask_row, rows, columns, size, length, SCALING, MASKED, IN_BOUNDS, D,
        )
        weights = tl.exp2(scores - log_total[:, None])
        if N_LISTED > 0:
            by_thread = _split_by_thread(weights, M)
            sums = ()
            for index in tl.static_range(N_LISTED):
                total = listed[index]
                if ((sum_bits >> index) & 1) != 0:
                    is_listed = (words[index // 2][:, None, :, None] >> (bit + 16 * (index % 2))) & 1
                    total += _thread_total(tl.where(is_listed != 0, by_thread, 0.0), M)
                sums = sums + (total,)
            listed = sums
        if N_WEIGHTED > 0:
            sums = ()
            for index in tl.static_range(N_WEIGHTED):
                cells = pair_weights + (index * size + rows[:, None]) * size + columns[None, :]
                in_range = row_mask[:, None] & (columns[None, :] < size)
                weight = tl.load(cells) if IN_BOUNDS else tl.load(cells, mask=in_range, other=0.0)
                sums = sums + (weighted[index] + _thread_total(weights * weight.to(tl.float32), M),)
            weighted = sums
    out += ((batch_row * heads + head) * n_tiles + row_tile) * (N_LISTED + N_WEIGHTED)
    for index in tl.static_range(N_LISTED):
        tl.store(out + index, tl.sum(listed[index]))
    for index in tl.static_range(N_WEIGHTED):
        tl.store(out + N_LISTED + index, tl.sum(weighted[index]))


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
    size, heads, log_normaliser, order, n_tiles, local_words, word_sizes, tile_words,
    target_parts, source_parts, max_tiles,
    SCALING: tl.constexpr, MASKED: tl.constexpr, D: tl.constexpr, M: tl.constexpr,
):
    """Between the words of two tiles, in all heads: the strongest target of each word, and its strongest source."""
    tile_pair, batch_row = tl.program_id(0), tl.program_id(1)
    offsets, dimensions = tl.arange(0, M), tl.arange(0, D)
    row_tile, column_tile = tile_pair // max_tiles, tile_pair % max_tiles
    row_slots = (batch_row * max_tiles + row_tile) * M + offsets
    column_slots = (batch_row * max_tiles + column_tile) * M + offsets
    # Tokens of empty slots are computed and ignored: row_pooling and column_pooling have no word for them.
    rows, columns = tl.maximum(tl.load(order + row_slots), 0), tl.maximum(tl.load(order + column_slots), 0)
    row_word, column_word = tl.load(local_words + row_slots), tl.load(local_words + column_slots)
    source_words, target_words = tl.load(tile_words + row_slots), tl.load(tile_words + column_slots)
    token_weight = 1.0 / tl.load(word_sizes + row_slots).to(tl.float32)
    row_pooling = tl.where(row_word[None, :] == offsets[:, None], token_weight[None, :], 0.0).to(tl.float16)
    column_pooling = (column_word[:, None] == offsets[None, :]).to(tl.float16)
    source_penalty, target_penalty = tl.where(source_words >= 0, 0.0, -1.0), tl.where(target_words >= 0, 0.0, -1.0)
    mask += batch_row * mask_batch
    used_tiles = tl.load(n_tiles + batch_row)
    for head in range(tl.where((row_tile < used_tiles) & (column_tile < used_tiles), heads, 0)):
        head_query = query + batch_row * query_batch + head * query_head
        queries = tl.load(head_query + rows[:, None] * query_row + dimensions[None, :])
        log_total = tl.load(log_normaliser + (batch_row * heads + head) * size + rows) / NATS_PER_BIT - SCALE_EXPONENT
        head_key = key + batch_row * key_batch + head * key_head
        scores = _scores(
            queries, head_key, mask, key_row, mask_row, rows, columns, size, size, SCALING, MASKED, True, D,
        )
        summed = tl.dot(tl.exp2(scores - log_total[:, None]).to(tl.float16), column_pooling).to(tl.float16)
        head_tile = ((batch_row * heads + head) * max_tiles + row_tile) * max_tiles + column_tile
        pooled = tl.dot(row_pooling, summed)
        strongest = _strongest(pooled, target_penalty, offsets, source_words, row_tile == column_tile, M)
        tl.store(target_parts + head_tile * M + offsets, strongest)
        pooled = tl.dot(tl.trans(summed), tl.trans(row_pooling))
        strongest = _strongest(pooled, source_penalty, offsets, target_words, row_tile == column_tile, M)
        tl.store(source_parts + head_tile * M + offsets, strongest)


@triton.jit
def _strongest_of_tiles(parts, step, words, first_tile, used_tiles, tile_words, word_counts, M: tl.constexpr):
    """The strongest word over all tiles, a pseudo-random one of equally strong words; -1 if there is none."""
    highest = tl.full([M], -1, tl.int32)
    strongest = tl.full([M], -1, tl.int32)
    priority = tl.full([M], 0.0, tl.float32)
    for tile in range(used_tiles):
        candidate = tl.load(parts + tile * step)
        weight = candidate & -M
        # Of equal tiles the one with the highest u^(1/n) is chosen, which is each as often as it has words (n).
        random = ((words * 7919 + tile * 104729) * 60493 >> 8) & 0xFFFF
        count = tl.load(word_counts + first_tile + tile).to(tl.float32)
        tile_priority = tl.log2((random.to(tl.float32) + 0.5) / 65536) / count
        is_higher = (weight > highest) | ((weight == highest) & (tile_priority > priority))
        is_higher = is_higher & (candidate >= 0)
        highest, priority = tl.where(is_higher, weight, highest), tl.where(is_higher, tile_priority, priority)
        index = (((candidate & (M - 1)) - words * PERMUTATION_SHIFT) * PERMUTATION_INVERSE) & (M - 1)
        word = tl.load(tile_words + (first_tile + tile) * M + index)
        strongest = tl.where(is_higher, word, strongest)
    return strongest


@triton.jit(do_not_specialize=["first_head"])
def merge_strongest_kernel(
    n_tiles, tile_words, word_counts, target_parts, source_parts, out, all_heads, first_head, max_words,
    M: tl.constexpr,
):
    """The strongest words of the words of one tile of a head, in both directions."""
    tile, head, batch_row = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    max_tiles, heads = tl.num_programs(0), tl.num_programs(1)
    offsets, batch_tiles = tl.arange(0, M), batch_row * max_tiles
    used_tiles = tl.load(n_tiles + batch_row)
    words = tl.load(tile_words + (batch_tiles + tile) * M + offsets)
    head_tiles = (batch_row * heads + head) * max_tiles * max_tiles
    out += (batch_row * all_heads + first_head + head) * 2 * max_words + tl.maximum(words, 0)
    parts = target_parts + (head_tiles + tile * max_tiles) * M + offsets
    strongest = _strongest_of_tiles(parts, M, words, batch_tiles, used_tiles, tile_words, word_counts, M)
    tl.store(out, strongest.to(out.dtype.element_ty), mask=words >= 0)
    parts = source_parts + (head_tiles + tile) * M + offsets
    strongest = _strongest_of_tiles(parts, max_tiles * M, words, batch_tiles, used_tiles, tile_words, word_counts, M)
    tl.store(out + max_words, strongest.to(out.dtype.element_ty), mask=words >= 0)
