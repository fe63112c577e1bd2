// What the webhook adds to Jobs and pods that name a queue, so that they wait for quota and then come to Berth.
//
// | object, when created with the label kueue.x-k8s.io/queue-name | what it gets |
// |---|---|
// | Job | suspend: true; schedulerName in its template |
// | Pod, also of a pod group | the gate kueue.x-k8s.io/admission, the label kueue.x-k8s.io/managed, schedulerName |
// | both | the annotation berth.dev/user: who created it, whatever it says itself |
//
// Of one that comes into a queue later, by an update of its label or owners, nothing is changed but the annotation: it
// becomes who makes the update. A Job without that label gets it first where the namespace has a LocalQueue named
// default (webhook/cluster.h). Who names another scheduler keeps it, with a warning. What belongs to an object that
// waits itself (the pods of a Job, a Job of a JobSet) gets the annotation alone. Pure functions; the same object twice
// is changed once.
#pragma once

#include "webhook/review.h"
#include "webhook/rules.h"

namespace berth::webhook {

AdmissionAnswer mutate(const AdmissionRequest& request, const Rules& rules);

}  // namespace berth::webhook
