"""What a cluster is like in which the original scheduler has worked and was stopped, by the recordings.

  left_by_original.py assemble NAME…      prints the objects of these recordings, as tests/data/left-by-original.json has them
  left_by_original.py play [driver.py's arguments of replay]

play brings the last state of every recording into an empty cluster, starts the scheduler there, and waits until it is at rest. It prints what was
written: the object, and what of it has changed. Events are not looked at, nor is what two runs of the original left in different ways.
$DRIVER names driver.py of the recordings.
"""
import copy, importlib.util, json, os, sys, time

spec = importlib.util.spec_from_file_location("driver", os.environ["DRIVER"])
driver = importlib.util.module_from_spec(spec)
spec.loader.exec_module(driver)

# When the original wrote what has a time: just now, which the driver replaces.
THEN = "$now"
# Pods name Reservations by their uids; what Reservations say of pods is in their status, which is written later.
ORDER = ["Namespace", "PriorityClass", "StorageClass", "PersistentVolume", "PersistentVolumeClaim", "CSINode", "Node", "Device",
         "NodeResourceTopology", "ClusterNetworkTopology", "ElasticQuota", "PodGroup", "Reservation", "Pod"]


def merged(target, patch):
    """RFC 7386"""
    if not isinstance(patch, dict):
        return patch
    target = copy.deepcopy(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = merged(target.get(key), value)
    return target


def key(object):
    metadata = object["metadata"]
    if driver.KINDS[object["kind"]][2]:
        metadata.setdefault("namespace", "default")
    return object["kind"], driver.key(object)


def given(case):
    """What people have made of the cluster: everything that was created, as it was changed, without what was deleted."""
    objects, gone = {}, {}
    def create(object):
        object = copy.deepcopy(object)
        objects[key(object)] = merged(objects.get(key(object)), object)
    for object in case["given"]:
        create(object)
    for step in case["steps"]:
        for action, of in step.items():
            for object in of if isinstance(of, list) else [of]:
                if not isinstance(object, dict):
                    continue
                object = copy.deepcopy(object)
                if action == "create":
                    create(object)
                elif action == "patch":
                    objects[key(object)] = merged(objects[key(object)], object)
                elif action == "update":
                    objects[key(object)] = {"status": objects[key(object)].get("status"), **object}
                elif action == "delete":
                    gone[key(object)] = objects.pop(key(object), None)
    return objects, gone


def annotate(object, recorded):
    for field in ("annotations", "labels"):
        if recorded.get(field):
            object["metadata"][field] = merged(object["metadata"].get(field), recorded[field])


def left(case):
    """Those objects with what the original wrote; `leaving` names the pods among them that are being deleted."""
    (objects, gone), recorded, leaving = given(case), case["recorded"], []
    for name, said in recorded["pods"].items():
        at = ("Pod", name)
        if said.get("deleted"):
            pod = objects.pop(at, None) or gone.get(at)
            if said.get("terminating"):
                objects[at] = pod
                leaving.append(name)
            continue
        pod = objects[at]
        annotate(pod, said)
        status = pod.setdefault("status", {})
        if said.get("nodeName"):
            pod["spec"]["nodeName"] = said["nodeName"]
        if said.get("nominatedNodeName"):
            status["nominatedNodeName"] = said["nominatedNodeName"]
        if said.get("podScheduled"):
            status["conditions"] = [{"type": "PodScheduled", "lastTransitionTime": THEN, **said["podScheduled"]}]
    for name, said in recorded["reservations"].items():
        if said.get("deleted"):
            objects.pop(("Reservation", name), None)
            continue
        reservation = objects[("Reservation", name)]
        annotate(reservation, said)
        status = {field: said[field] for field in ("phase", "nodeName", "allocatable", "allocated") if said.get(field)}
        if said.get("conditions"):
            status["conditions"] = [{"lastProbeTime": THEN, "lastTransitionTime": THEN, **one} for one in said["conditions"]]
        if said.get("currentOwners"):
            owners = [owner.split("/") for owner in said["currentOwners"]]
            status["currentOwners"] = [{"namespace": of, "name": pod, "uid": f"$uid(Pod/{of}/{pod})"} for of, pod in owners]
        reservation["status"] = status
    for name, said in recorded["quotas"].items():
        namespace, quota = name.split("/")
        objects.setdefault(("ElasticQuota", name), {
            "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
            "metadata": {"name": quota, "namespace": namespace}, "spec": said.get("spec") or {}})
        annotate(objects[("ElasticQuota", name)], said)
        objects[("ElasticQuota", name)]["status"] = said["status"]
    for name, said in recorded["podgroups"].items():
        if ("PodGroup", name) in objects and said:
            objects[("PodGroup", name)]["status"] = {"scheduleStartTime": THEN, **said}
    for name, said in recorded.get("networktopologies", {}).items():
        if said:
            objects[("ClusterNetworkTopology", name)]["status"] = said
    rank = lambda object: ORDER.index(object["kind"]) if object["kind"] in ORDER else 0
    return sorted(objects.values(), key=rank), leaving


def assemble(names):
    clusters = []
    for name in names:
        objects, leaving = left(json.load(open(os.path.join(driver.HERE, "cases", name + ".json"))))
        clusters.append({"name": name, "objects": objects, "leaving": leaving})
    json.dump(clusters, sys.stdout, indent=1)
    print()


# Where a recording speaks of objects of a kind.
SECTIONS = {"Pod": "pods", "Reservation": "reservations", "ElasticQuota": "quotas", "PodGroup": "podgroups",
            "ClusterNetworkTopology": "networktopologies"}
# What has a status that is written beside the object, once all objects are there.
WITH_STATUS = {"Reservation", "PodGroup", "ElasticQuota", "ClusterNetworkTopology"}


def everything(runner):
    kinds = [kind for kind in driver.KINDS if kind not in ("Event", "Namespace")]
    return {(kind, driver.key({**object, "kind": kind})): object for kind in kinds for object in runner.api.list(kind)}


def bring(runner, objects, leaving):
    for object in objects:
        runner.create({field: value for field, value in object.items() if field != "status" or object["kind"] not in WITH_STATUS})
    for object in objects:
        if object["kind"] in WITH_STATUS and object.get("status"):
            names = {field: value for field, value in object["metadata"].items() if field in ("name", "namespace")}
            runner.patch({"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": names, "status": object["status"]})
    for name in leaving:
        pod = next(object for object in objects if object["kind"] == "Pod" and driver.key(object) == name)
        runner.delete({**pod, "gracePeriodSeconds": pod["spec"].get("terminationGracePeriodSeconds", 30)})


def embedded(object, annotation):
    return json.loads((object["metadata"].get("annotations") or {}).get("scheduling.koordinator.sh/" + annotation) or "{}")


def cpus(text):
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def given_twice(objects):
    """CPUs and virtual functions that two pods have, and devices of which more than all is given out."""
    times, shares = {}, {}
    for (kind, _), pod in objects.items():
        node = pod.get("spec", {}).get("nodeName")
        if kind != "Pod" or not node or pod["status"].get("phase") in ("Succeeded", "Failed"):
            continue
        parts = [f"CPU {cpu}" for cpu in cpus(embedded(pod, "resource-status").get("cpuset") or "")]
        for type, devices in embedded(pod, "device-allocated").items():
            for device in devices:
                parts += [f"virtual function {vf['busID']}" for vf in (device.get("extension") or {}).get("vfs") or []]
                for resource, amount in device["resources"].items():
                    if amount.isdigit():
                        share = (node, f"{resource} of {type} {device['minor']}")
                        shares[share] = shares.get(share, 0) + int(amount)
        for part in parts:
            times[node, part] = times.get((node, part), 0) + 1
    return {at for at, count in times.items() if count > 1} | {at for at, sum in shares.items() if 100 < sum}


def without_versions(object):
    object = copy.deepcopy(object)
    for field in ("resourceVersion", "managedFields", "generation"):
        object["metadata"].pop(field, None)
    return object


def written(case, before, after):
    """What was written, one change a line."""
    unsteady = {tuple(path[:2]) for path in case.get("unstable") or []}
    for at in sorted(before.keys() | after.keys()):
        kind, name = at
        old, new = before.get(at), after.get(at)
        if (SECTIONS.get(kind), name) in unsteady:
            continue
        if not old and kind == "ElasticQuota" and not case["recorded"]["quotas"]:
            continue  # the quotas that every cluster has are recorded only beside others
        if not old or not new:
            yield f"{kind} {name}: {'deleted' if old else 'created'}"
        elif old["metadata"]["resourceVersion"] != new["metadata"]["resourceVersion"]:
            is_bound = kind == "Pod" and old["spec"].get("nodeName")
            changes = list(driver.diff(without_versions(old), without_versions(new)))
            for path, was, now in changes or [("nothing of it", None, None)]:
                yield f"{'BOUND ' if is_bound else ''}{kind} {name}: {path}: {json.dumps(was)} became {json.dumps(now)}"
    for node, part in sorted(given_twice(after) - given_twice(before)):
        yield f"BOUND Node {node}: more than there is of {part} is given out"


def play(arguments):
    parser = driver.argparse.ArgumentParser()
    for name in ("--server", "--token", "--restart-cmd", "--stop-cmd", "--kubeconfig", "--shard"):
        parser.add_argument(name)
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args(arguments)
    runner, passed, failed = driver.Runner(options), 0, 0
    for name in driver.cases(options):
        case = json.load(open(os.path.join(driver.HERE, "cases", name + ".json")))
        if "recorded" not in case:
            continue
        if any(path[0] == "pods" and (len(path) < 3 or path[2] == "nodeName") for path in case.get("unstable") or []):
            print(f"=== {name}: two runs of the original left pods in different places", flush=True)
            continue
        runner.uids, runner.byname, runner.created = {}, {}, {}
        try:
            runner.stop()
            runner.reset()
            bring(runner, *left(case))
            before = everything(runner)
            runner.start(case)
            time.sleep(1)
            runner.settle(0.8, 8)
            lines = list(written(case, before, everything(runner)))
        except Exception as error:
            lines = [f"error: {error!r}"]
        passed, failed = passed + (not lines), failed + bool(lines)
        if lines:
            print(f"--- {name}", *lines, sep="\n    ", flush=True)
    runner.stop()
    print(f"{passed} passed, {failed} failed")


if __name__ == "__main__":
    mode, *rest = sys.argv[1:]
    {"assemble": assemble, "play": play}[mode](rest)
