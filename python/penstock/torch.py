"""For PyTorch: an iterator of dicts of tensors, in place of torch.utils.data.DataLoader.

    import penstock as ps, penstock.torch

    train = ps.torch.DataLoader(
        ps.image_folder("train").seed(7).shuffle()
        .map(ps.decode_image(crop=ps.random_resized_crop(224), flip=0.5))
        .batch(256))
    for epoch in range(90):
        for batch in train:
            loss = criterion(model(batch["image"]), batch["label"])

No worker processes, no collate_fn, no pin_memory, no sampler.set_epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import torch

from penstock._calls import OF_FROM_DATASET, OF_TORCH_LOADER, answering, check_options, keywords_of
from penstock._passes import LoaderOptions, PassLoader, context_of
from penstock._penstock import Dataset, DeviceBatch, InputContext, Step, pad
from penstock._items import is_file, refuse
from penstock._structure import Branch, Flat, Leaf, check_names, length_of, structure_of
from penstock._trainers import Steps

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["DataLoader", "Tensors", "from_dataset", "as_tensors", "as_nested", "as_targets", "current_context", "current_device"]

Tensors = dict[str, torch.Tensor]


def as_tensors(batch: DeviceBatch) -> Tensors:
    """The fields of a batch as torch tensors, without copying.

    Shapes  image u8 [size,H,W,C] and so on: what the plan makes.
    Stream  ordered on the current stream of their device; for other streams call batch.wait_on.
    Owns    the tensors keep the batch's slot.
    """
    return {name: torch.from_dlpack(tensor) for name, tensor in batch.items()}


def as_nested(rows: torch.Tensor, lengths: torch.Tensor, *, compact: bool = False) -> torch.Tensor:
    """What `pad` made one length, as a nested tensor of rows of their own lengths (layout jagged).

    Without `compact` nothing is copied, and what was added lies between the rows: some operations of torch
    refuse nested tensors with holes. With it the rows are copied one behind the other; offsets() is then
    what attention kernels call cu_seqlens, but for its type.

    Shapes  rows [n,to,...], lengths i64 [n]: the fields of a batch that pad(..., lengths=...) made
    Errors  ValueError  lengths of other rows; on the CPU also lengths outside [0, to], which a GPU would have to be waited for
    """
    count, to = rows.shape[:2]
    if lengths.shape != (count,):
        raise ValueError(f"as_nested: expected {count} lengths, one for each row, found {list(lengths.shape)}")
    if not lengths.is_cuda and count and (int(lengths.min()) < 0 or int(lengths.max()) > to):
        raise ValueError(
            f"as_nested: lengths from {int(lengths.min())} to {int(lengths.max())} for rows of {to}: give the field that pad() made of these rows"
        )
    if not compact:
        offsets = torch.arange(count + 1, device=rows.device) * to
        return torch.nested.nested_tensor_from_jagged(rows.flatten(0, 1), offsets=offsets, lengths=lengths)
    kept = torch.arange(to, device=rows.device) < lengths[:, None]
    offsets = torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
    return torch.nested.nested_tensor_from_jagged(rows[kept], offsets=offsets)


def as_targets(
    batch: Mapping[str, torch.Tensor],
    fields: Sequence[str] = ("boxes", "labels"),
    *,
    lengths: str = "count",
    labels: str = "labels",
    add_to_labels: int | None = None,
    tv_tensors_of: str | None = None,
) -> list[Tensors]:
    """The instances of each image, as torchvision's detection models take them: `model(images, as_targets(batch))`.

    Label 0 is the background of its R-CNN and SSD models, so that an instance with it would be learnt as none. Labels of
    coco(category_ids=True) begin with 1 where the ids of the file do; where they begin with 0, `add_to_labels=1` makes them begin
    with 1, and `add_to_labels=0` leaves them, for RetinaNet and FCOS, which have no background. Without it a label below 1 in the field
    `labels` is an error.

    The tensors are rows of the batch's; only labels to which something is added are copied. Lengths and labels on a GPU are waited for. With `tv_tensors_of`, the field of the
    images, boxes are torchvision.tv_tensors.BoundingBoxes, masks Mask, and keypoints KeyPoints, without their visibility, for transforms
    of torchvision.

    Shapes  fields [n,to,...] and `lengths` i64 [n], which pad(..., lengths=..., also=...) made; out: n dicts of [length,...]. Images of
            `tv_tensors_of` [n,height,width,channels] or [n,channels,height,width], of 1 or 3 channels
    Errors  ValueError  the batch has no such field; lengths of other rows; a label below 1 without `add_to_labels`
    """
    fields = (fields,) if isinstance(fields, str) else fields
    wanted = [*fields, lengths] if tv_tensors_of is None else [*fields, lengths, tv_tensors_of]
    for name in wanted:
        if name not in batch:
            raise ValueError(f"as_targets: the batch has no field '{name}': there are {', '.join(batch)}")
    if batch[lengths].dim() != 1:
        raise ValueError(f"as_targets: '{lengths}' has one number for each image, found {list(batch[lengths].shape)}")
    counts: list[int] = batch[lengths].tolist()
    for name in fields:
        shape = list(batch[name].shape)
        if len(shape) < 2 or shape[0] != len(counts) or shape[1] < max(counts, default=0) or min(counts, default=0) < 0:
            raise ValueError(f"as_targets: '{lengths}' {list(batch[lengths].shape)} does not say how many rows '{name}' {shape} has of each image")
    targets = [{name: batch[name][row, :count] for name in fields} for row, count in enumerate(counts)]
    if labels in fields and add_to_labels is None:
        given = torch.cat([target[labels].flatten() for target in targets]) if targets else batch[labels]
        lowest = int(given.min()) if given.numel() else 1
        if lowest < 1:
            raise ValueError(
                f"as_targets: '{labels}' has the label {lowest}, and label 0 is the background of torchvision's models: pass add_to_labels=1, "
                "or add_to_labels=0 for RetinaNet and FCOS, which have none"
            )
    elif labels in fields and add_to_labels:
        for target in targets:
            target[labels] = target[labels] + add_to_labels
    if tv_tensors_of is None:
        return targets
    from torchvision import tv_tensors

    image = batch[tv_tensors_of].shape
    if len(image) != 4:
        raise ValueError(f"as_targets: '{tv_tensors_of}' has one image for each row, 4 dimensions, found {list(image)}")
    size = (image[1], image[2]) if image[-1] in (1, 3) else (image[2], image[3])
    for target in targets:
        for name, rows in target.items():
            if rows.dim() == 2 and rows.shape[1] == 4 and rows.is_floating_point():
                target[name] = tv_tensors.BoundingBoxes(rows, format="XYXY", canvas_size=size)
            elif rows.dim() == 3 and rows.shape[2] == 3 and rows.is_floating_point():
                target[name] = tv_tensors.KeyPoints(rows[..., :2], canvas_size=size)
            elif rows.dim() == 3 and rows.shape[1:] == size and rows.dtype in (torch.uint8, torch.bool):
                target[name] = tv_tensors.Mask(rows)
    return targets


def current_context() -> InputContext:
    """This process's rank and the world size: torch.distributed's when it is initialised, else the
    launcher's."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return context_of(distributed.get_world_size(), distributed.get_rank())
    return InputContext.from_environment()


def current_device() -> str:
    """The current CUDA device, or the host where there is none."""
    return f"cuda:{torch.cuda.current_device()}" if torch.cuda.is_available() else "host:0"


class DataLoader(PassLoader[Any]):
    """Each `for` loop is one pass over `dataset`, a plan that ends in batch, as dicts of tensors.

    With one device a step is a dict; with several it is a list of dicts, one for each.

    `dataset`  its batch is the global batch, over all processes; no prefetch_to_devices.
    `devices`  as for prefetch_to_devices; by default the current CUDA device, or the host.
    `context`  by default current_context().
    `copy`     fields to hand out as copies, which you may keep: copy=("label",). The others' memory is
               that of the batch, and is used again when the last tensor made of it is gone.
    `names`    a key of the dict under which the names of the rows are, as DeviceBatch.names() has them: names="name".
    `collate`  what to make of a device's dict of tensors, by a function: lambda batch: (batch["image"],
               batch["label"]) for loops that take x and y.
    The rest   as for Dataset.prefetch_to_devices and Dataset.loader.

    A loop that was left early cannot be continued: the next one begins the next pass. state_dict and
    load_state_dict are those of torchdata's StatefulDataLoader: after loading, the first loop
    delivers what was left.

    What trainers ask a DataLoader of torch's for is there: dataset (whose len() is the samples of a
    pass), batch_size, drop_last, sampler, batch_sampler, set_epoch and so on; docs/trainers.md.
    """

    # The attributes of torch's DataLoader, for trainers that make another loader with the same values.
    sampler = None
    num_workers = 0
    pin_memory = False
    timeout: float = 0
    worker_init_fn = multiprocessing_context = generator = prefetch_factor = None
    persistent_workers = False

    @answering(OF_TORCH_LOADER, "DataLoader", in_torchs_place=True)
    def __init__(
        self,
        dataset: Dataset,
        *,
        devices: Any = None,
        depth: int = 2,
        split: Literal["scatter", "round_robin", "shard_early"] = "scatter",
        context: InputContext | None = None,
        copy: Sequence[str] = (),
        names: str | None = None,
        collate: Callable[[Tensors], Any] | None = None,
        **options: Unpack[LoaderOptions],
    ) -> None:
        if not isinstance(dataset, Dataset):
            raise TypeError(
                f"DataLoader takes a plan, found {type(dataset).__name__}: for a data set of your own, "
                "penstock.torch.from_dataset(data, 8, shuffle=True)"
            )
        check_options(DataLoader, options, list(LoaderOptions.__annotations__), OF_TORCH_LOADER)
        devices = [current_device()] if devices is None else devices
        super().__init__(dataset, devices, depth, split, context or current_context(), options)
        self._collate = collate
        self._copied = frozenset([copy] if isinstance(copy, str) else copy)
        known = [field.name for field in self._loader.fields]
        if unknown := sorted(self._copied - set(known)):
            raise ValueError(f"copy: there is no field '{unknown[0]}'; there are {', '.join(known)}")
        self._names = self._key_of_names(names)

    @property
    def batch_sampler(self) -> Steps:
        """The steps of a pass, for trainers that leave some of them out."""
        return Steps(self)

    @property
    def drop_last(self) -> bool:
        """Whether samples that do not fill the last batch are left out: batch(..., remainder="drop")."""
        return self.plan.remainder == "drop"

    @staticmethod
    def collate_fn(batch: Any) -> Any:
        """A batch as it is: the loader has put it together."""
        return batch

    def _convert(self, step: Step) -> Any:
        parts = [self._tensors(part) for part in step.parts]
        return parts[0] if len(parts) == 1 else parts

    def _tensors(self, part: DeviceBatch) -> Any:
        tensors: dict[str, Any] = as_tensors(part)
        for name in self._copied:
            tensors[name] = tensors[name].clone()
        if self._names is not None:
            tensors[self._names] = part.names()
        return tensors if self._collate is None else self._collate(tensors)


@answering(OF_FROM_DATASET, in_torchs_place=True)
def from_dataset(
    dataset: Any,
    batch_size: int = 1,
    *,
    shuffle: bool = False,
    seed: int | None = None,
    drop_last: bool = False,
    workers: int = 0,
    concurrent: bool = False,
    fields: Any = None,
    text_bytes: int = 4096,
    collate: Callable[[Tensors], Any] | None = None,
    **options: Any,
) -> DataLoader:
    """A loader of a map-style data set, an object with __len__ and __getitem__, as
    torch.utils.data.DataLoader(dataset, batch_size, shuffle=..., drop_last=...) is one.

    Batches have the form of the first item: of a dict a dict, of a namedtuple a namedtuple, of a tuple or list a list,
    also in one another; of numbers, lists of numbers (of which torch makes a tensor each), arrays, tensors and PIL images
    a tensor; of a text or bytes a list of them.
    For texts on a GPU the host waits for the batch, since they come back from there.

    `batch_size`  the global batch, over all devices and processes.
    `seed`        of the shuffle, and of what is random in the items where there are `workers`.
    `workers`     processes, for items whose code holds the GIL for long; see Dataset(data).
    `concurrent`  whether several threads may call dataset[i] at once, for items that give up the GIL; see Dataset(data).
    `fields`      as for Dataset(data), where items differ or types should be others; then items are flat, and
                  texts are u8 [?].
    `text_bytes`  room in a batch for each text: a longer one is a fault, which says so.
    `collate`     gets the dict of a batch's fields, in place of the form above: 'meta.id' of a dict in a dict,
                  '0' of a tuple, and of a text 'name' u8 [rows, text_bytes] and 'name.bytes' i64 [rows].
    The rest      as for DataLoader.

    Errors  as Dataset(data); ValueError  items of different sizes, which make no batch
    """
    if isinstance(dataset, Dataset):
        raise TypeError("from_dataset takes a data set of your own, and this is a plan: DataLoader(plan.batch(8))")
    if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
        refuse(dataset, type(dataset).__name__)
    check_options(from_dataset, options, [*keywords_of(DataLoader), *LoaderOptions.__annotations__], OF_FROM_DATASET)
    first = dataset[0] if len(dataset) else ()
    structure = structure_of(first)
    leaves = list(structure.leaves())
    check_names(leaves)
    for leaf, value in zip(leaves, structure.values(first)):
        if is_file(value):
            field = "" if leaf.name == "image" else f"field='{leaf.name}', "
            raise ValueError(
                f"'{leaf.name}' is an encoded image: make the plan yourself, "
                f"DataLoader(ps.Dataset(data).map(ps.decode_image({field}crop=ps.random_resized_crop(224))).batch(8))"
            )
    if collate is None and options.get("on_fault") == "mask" and not _has_place_for_valid(structure):
        raise ValueError(
            "on_fault='mask' needs a place for the field 'valid', which says which rows are masked: give items that are dicts "
            "without a part of this name, or collate=, which gets it"
        )
    if options.get("names") is not None and collate is None:
        raise ValueError(
            "names needs a dict of the batch's fields to be in, and these batches have the form of the items: pass collate=, which "
            "gets that dict"
        )
    texts = [leaf.name for leaf in leaves if leaf.text is not None] if fields is None else []
    names = None
    if fields is None and (texts or _is_deep(structure) or not _has_plain_keys(structure)):
        plan = Dataset(Flat(dataset, structure, text_bytes), workers=workers, concurrent=concurrent)
        for name in texts:
            plan = plan.map(pad(name, text_bytes, lengths=length_of(name)))
    else:
        if fields is None and isinstance(structure, Branch) and structure.kind is list:
            names = [leaf.name for leaf in leaves]
        plan = Dataset(dataset, fields=fields, names=names, workers=workers, concurrent=concurrent)
    plan = plan if seed is None else plan.seed(seed)
    plan = plan.shuffle() if shuffle else plan
    plan = plan.batch(batch_size, remainder="drop" if drop_last else "keep")
    if collate is None:
        collate = _as_fields(structure) if fields is not None else _as_items(structure)
    return DataLoader(plan, collate=collate, **options)


def _is_deep(structure: Leaf | Branch) -> bool:
    return isinstance(structure, Branch) and any(isinstance(child, Branch) for child in structure.children.values())


def _has_plain_keys(structure: Leaf | Branch) -> bool:
    """Whether the keys of an item are names of fields as they are; the items of a list are not."""
    if isinstance(structure, Leaf):
        return True
    return not structure.is_list and (structure.kind is not dict or all(isinstance(key, str) and key for key in structure.children))


def _has_place_for_valid(structure: Leaf | Branch) -> bool:
    return isinstance(structure, Branch) and structure.kind is dict and "valid" not in structure.children


def _as_items(structure: Leaf | Branch) -> Callable[[Tensors], Any]:
    """Puts the fields of a batch together as the first item is."""

    def rebuild(batch: Tensors) -> Any:
        found = structure.rebuild(batch)
        if _has_place_for_valid(structure) and "valid" in batch:
            found["valid"] = batch["valid"]
        return found

    return rebuild


def _as_fields(structure: Leaf | Branch) -> Callable[[Tensors], Any] | None:
    """The fields that were given, as a list where items are tuples, and alone where they are no dicts."""
    if isinstance(structure, Leaf):
        return lambda batch: next(iter(batch.values()))
    if structure.kind is dict:
        return None
    return lambda batch: [tensor for name, tensor in batch.items() if name != "valid"]
