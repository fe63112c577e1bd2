// The kinds that Berth reads in protobuf: Pod and Node, of which clusters have many, and the Status of an error.
//
// A table has what the decoders of src/api read, and no more: whoever lets a decoder read another member adds it here
// too, and to the objects of tests/cluster/wire_test.py, which finds what is missing. Numbers are those of
// generated.proto in k8s.io/api core/v1 and k8s.io/apimachinery meta/v1 (1.35); a number never changes its meaning.
#pragma once

#include "api/protobuf_json.h"

namespace berth::api {

extern const ProtobufMessage kPodProtobuf;
extern const ProtobufMessage kNodeProtobuf;
extern const ProtobufMessage kStatusProtobuf;  // metav1.Status

}  // namespace berth::api
