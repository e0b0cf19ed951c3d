#include "casters.hpp"

#include <nanobind/stl/vector.h>

namespace penstock::python {

namespace {

constexpr std::array<std::string_view, kDTypes.size()> kNumpyNames{
    "uint8",  "int8",    "int16",    "uint16",  "int32",   "uint32", "int64",
    "uint64", "float16", "bfloat16", "float32", "float64", "bool"};

Device one_device(nb::handle given) {
  Device device;
  if (nb::try_cast(given, device)) return device;
  if (nb::isinstance<nb::str>(given)) return Device::parse(nb::cast<std::string>(given));
  throw std::invalid_argument("expected a device such as 'cuda:0' or 'host:1', found " +
                              repr_of(given));
}

}  // namespace

std::string hint_at(nb::handle given) {
  return nb::cast<std::string>(nb::module_::import_("penstock._calls").attr("hint")(given));
}

DType parse_dtype(std::string_view name) {
  std::string all;
  for (std::size_t i = 0; i < kDTypes.size(); ++i) {
    if (name == name_of(kDTypes[i]) || name == kNumpyNames[i]) return kDTypes[i];
    all += (i == 0 ? "" : ", ") + std::string(name_of(kDTypes[i]));
  }
  throw std::invalid_argument("a dtype must be one of " + all +
                              ", or numpy's name for it, found '" + std::string(name) + "'");
}

std::string_view numpy_name_of(DType dtype) { return kNumpyNames[static_cast<std::size_t>(dtype)]; }

Shape parse_shape(nb::handle extents) {
  std::vector<std::int64_t> values;
  if (nb::isinstance<nb::str>(extents) || PySequence_Check(extents.ptr()) == 0)
    throw std::invalid_argument("a shape is a sequence of extents such as (224, 224, 3), found " +
                                repr_of(extents));
  for (const nb::handle extent : extents) {
    std::int64_t value = kDynamic;
    if (!extent.is_none() && !nb::try_cast(extent, value))
      throw std::invalid_argument("an extent is a number, or None where it differs, found " +
                                  repr_of(extent));
    values.push_back(value);
  }
  return Shape(values);
}

nb::tuple to_tuple(const Shape& shape) {
  nb::list extents;
  for (const std::int64_t extent : shape.extents())
    extents.append(extent == kDynamic ? nb::none() : nb::object(nb::int_(extent)));
  return nb::tuple(extents);
}

std::vector<Device> DeviceList::value() const {
  if (nb::isinstance<nb::str>(given)) return parse_devices(nb::cast<std::string>(given));
  if (nb::isinstance<Device>(given)) return {nb::cast<Device>(given)};
  if (PySequence_Check(given.ptr()) == 0)
    throw std::invalid_argument(
        "expected devices: 'auto', 'host:4', 'cuda:0,1', or a list of their names, found " +
        repr_of(given));
  std::vector<Device> devices;
  for (const nb::handle device : given) devices.push_back(one_device(device));
  return devices;
}

std::vector<FieldSpec> Fields::value() const {
  std::vector<FieldSpec> fields;
  const auto add_pair = [&](nb::handle name, nb::handle pair) {
    if (!nb::isinstance<nb::str>(name) || nb::isinstance<nb::str>(pair) ||
        PySequence_Check(pair.ptr()) == 0 || nb::len(pair) != 2 ||
        !nb::isinstance<nb::str>(pair[0]))
      throw std::invalid_argument(
          "a field is a name and a pair of dtype and shape, such as {'image': ('f32', (224, 224, "
          "3))}, found " +
          repr_of(name) + ": " + repr_of(pair));
    fields.push_back({.name = nb::cast<std::string>(name),
                      .dtype = parse_dtype(nb::cast<std::string>(pair[0])),
                      .shape = parse_shape(pair[1])});
  };
  if (PyMapping_Check(given.ptr()) != 0 && nb::hasattr(given, "items")) {
    for (const nb::handle item : given.attr("items")()) add_pair(item[0], item[1]);
    return fields;
  }
  if (nb::isinstance<nb::str>(given) || PySequence_Check(given.ptr()) == 0)
    throw std::invalid_argument(
        "expected fields: a list of FieldSpec, or a mapping such as {'image': ('f32', (224, 224, "
        "3))}, found " +
        repr_of(given));
  for (const nb::handle one : given) {
    if (!nb::isinstance<FieldSpec>(one))
      throw std::invalid_argument("expected a FieldSpec, found " + repr_of(one));
    fields.push_back(nb::cast<FieldSpec>(one));
  }
  return fields;
}

}  // namespace penstock::python
