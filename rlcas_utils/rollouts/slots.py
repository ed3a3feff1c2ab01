"""A key/value cache with one slot per running episode: no padding between turns, no copying between steps.

A model's own cache grows by concatenation and holds all rows at one length, so ragged turns leave holes in it
and every step copies it whole. Here each row writes at its own length into storage laid out once, and the
rows in use always fill the first slots, so that a decoding step reads a view.
"""

import torch

GROWTH = 256  # tokens; storage grows in these pieces


class SlotCache:
    """Key/value storage (slots, heads, tokens, head size) per layer, handed to the model as its cache.

    Attributes:
        lengths: Tokens held by each slot.
    """

    def __init__(self, num_slots: int) -> None:
        """Lays out no storage yet: its shape is known at the first forward pass."""
        self.lengths: list[int] = [0] * num_slots
        self._keys: list[torch.Tensor] = []
        self._values: list[torch.Tensor] = []
        self._prefix: list[tuple[torch.Tensor, torch.Tensor]] = []

    def prepare(self, slots: list[int], counts: list[int], device: torch.device) -> torch.Tensor:
        """Announces the next forward pass: `counts[i]` new tokens for `slots[i]`, padded on the left.

        Args:
            slots: Rows of the pass, in order.
            counts: New tokens per row, each at least 1.
            device: Where the model is.

        Returns:
            Mask (rows, 1, new tokens, kept tokens), True where a token may look.
        """
        width = max(counts)
        starts = [self.lengths[slot] for slot in slots]
        self._total = max(start + count for start, count in zip(starts, counts, strict=True))
        in_order = slots == list(range(len(slots)))
        self._rows = slice(0, len(slots)) if in_order else torch.tensor(slots, device=device)
        offset_B1 = torch.tensor([[start - (width - n)] for start, n in zip(starts, counts, strict=True)])
        place_BT = offset_B1 + torch.arange(width)
        self._real_BT = (place_BT >= torch.tensor(starts)[:, None]).to(device)
        slot_BT = torch.tensor(slots)[:, None].expand(-1, width)
        self._slot_N, self._place_N = slot_BT.to(device)[self._real_BT], place_BT.to(device)[self._real_BT]
        # A padded query has no token of its own: it looks at place 0, so that no softmax is over nothing.
        self.position_ids = place_BT.clamp(min=0).to(device)
        seen_BTK = torch.arange(self._total, device=device) <= self.position_ids[:, :, None]
        return seen_BTK[:, None]

    def commit(self, slots: list[int], counts: list[int]) -> None:
        """Records that the announced tokens are now held."""
        for slot, count in zip(slots, counts, strict=True):
            self.lengths[slot] += count

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer_index: int, **_: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Called by each attention layer: stores the new keys and values, returns all that the rows hold."""
        if layer_index == len(self._keys):
            self._keys.append(keys.new_zeros(self._shape(keys)))
            self._values.append(values.new_zeros(self._shape(values)))
        if self._keys[layer_index].shape[2] < self._total:
            self._keys[layer_index] = self._grown(self._keys[layer_index])
            self._values[layer_index] = self._grown(self._values[layer_index])
        kept_keys, kept_values = self._keys[layer_index], self._values[layer_index]
        kept_keys[self._slot_N, :, self._place_N] = keys.transpose(1, 2)[self._real_BT]
        kept_values[self._slot_N, :, self._place_N] = values.transpose(1, 2)[self._real_BT]
        return kept_keys[self._rows, :, : self._total], kept_values[self._rows, :, : self._total]

    def get_seq_length(self, layer_index: int = 0) -> int:
        """Returns the longest slot; models ask when they are given no positions."""
        return max(self.lengths)

    def save_prefix(self, slot: int) -> None:
        """Keeps what `slot` holds as the start that later episodes share, and empties the slot."""
        length = self.lengths[slot]
        pairs = zip(self._keys, self._values, strict=True)
        self._prefix = [(k[slot, :, :length].clone(), v[slot, :, :length].clone()) for k, v in pairs]
        self.lengths[slot] = 0

    def load_prefix(self, slot: int) -> None:
        """Starts `slot` with the shared prefix."""
        for layer, (keys, values) in enumerate(self._prefix):
            self._keys[layer][slot, :, : keys.shape[1]] = keys
            self._values[layer][slot, :, : keys.shape[1]] = values
        self.lengths[slot] = self._prefix[0][0].shape[1] if self._prefix else 0

    def move(self, source: int, target: int) -> None:
        """Moves an episode into a freed slot, so that running episodes stay in the first slots."""
        length = self.lengths[source]
        if source != target:
            for storage in (*self._keys, *self._values):
                storage[target, :, :length] = storage[source, :, :length]
        self.lengths[source] = 0
        self.lengths[target] = length if source != target else 0

    def _capacity(self) -> int:
        return -(-self._total // GROWTH) * GROWTH

    def _shape(self, states: torch.Tensor) -> tuple[int, int, int, int]:
        return len(self.lengths), states.shape[1], self._capacity(), states.shape[3]

    def _grown(self, storage: torch.Tensor) -> torch.Tensor:
        larger = storage.new_zeros((*storage.shape[:2], self._capacity(), storage.shape[3]))
        larger[:, :, : storage.shape[2]] = storage
        return larger
