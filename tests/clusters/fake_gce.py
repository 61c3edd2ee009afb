"""A small fake of Google's REST interfaces, as far as Ray's cluster launcher uses them.

Projects, roles, service accounts, ssh keys, subnets, instances and their operations. A machine is RUNNING once its
operation was asked for, and gone once it was deleted. What Google would refuse about an instance is refused.
"""

from __future__ import annotations

import json
import re
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

HOSTS = ("compute", "iam", "cloudresourcemanager", "oauth2")
"""Names below googleapis.com."""
_LABEL = re.compile(r"[-_a-z0-9]{0,63}")
_ZONE = r"/compute/v1/projects/(?P<project>[^/]+)/zones/(?P<zone>[^/]+)"
_PROJECT = "/v1/projects/(?P<project>[^/:]+)"
_ROUTES = (
    ("POST", "/token", "token"),
    ("GET", _PROJECT, "project"),
    ("POST", f"{_PROJECT}:getIamPolicy", "get_policy"),
    ("POST", f"{_PROJECT}:setIamPolicy", "set_policy"),
    ("GET", f"{_PROJECT}/serviceAccounts/(?P<account>[^/]+)", "account"),
    ("POST", f"{_PROJECT}/serviceAccounts", "create_account"),
    ("GET", "/compute/v1/projects/(?P<project>[^/]+)", "compute_project"),
    ("POST", "/compute/v1/projects/(?P<project>[^/]+)/setCommonInstanceMetadata", "set_metadata"),
    ("GET", "/compute/v1/projects/(?P<project>[^/]+)/global/operations/(?P<name>[^/]+)", "operation"),
    ("GET", "/compute/v1/projects/(?P<project>[^/]+)/regions/(?P<region>[^/]+)/subnetworks", "subnets"),
    ("GET", f"{_ZONE}/operations/(?P<name>[^/]+)", "operation"),
    ("GET", f"{_ZONE}/instances", "instances"),
    ("POST", f"{_ZONE}/instances", "insert"),
    ("GET", f"{_ZONE}/instances/(?P<name>[^/]+)", "instance"),
    ("DELETE", f"{_ZONE}/instances/(?P<name>[^/]+)", "delete"),
    ("POST", f"{_ZONE}/instances/(?P<name>[^/]+)/setLabels", "set_labels"),
)
Values = dict[str, Any]


class Refused(Exception):
    """An answer with an HTTP status that is not 200."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class FakeGce:
    """The state of one project, changed by requests of one thread at a time."""

    def __init__(self, authorized_keys: Path) -> None:
        self.machines: dict[str, Values] = {}
        """All that were ever started, by name."""
        self.roles: list[Values] = []
        self.unknown: list[str] = []
        """Requests that this fake has no answer to."""
        self._authorized_keys = authorized_keys
        self._accounts: dict[str, Values] = {}
        self._metadata: Values = {"fingerprint": "0", "items": []}

    def answer(self, method: str, url: str, body: Values) -> Values:
        """The answer to one request."""
        parts = urlsplit(url)
        for wanted, pattern, name in _ROUTES:
            if method == wanted and (match := re.fullmatch(pattern, parts.path)) is not None:
                self._query = parse_qs(parts.query)
                words = {key: unquote(value) for key, value in match.groupdict().items()}
                answer: Values = getattr(self, f"_{name}")(words, body)
                return answer
        self.unknown.append(f"{method} {parts.path}")
        raise Refused(404, f"unknown: {method} {parts.path}")

    def _token(self, words: Values, body: Values) -> Values:
        return {"access_token": "fake", "expires_in": 3600, "token_type": "Bearer"}

    def _project(self, words: Values, body: Values) -> Values:
        return {"projectId": words["project"], "lifecycleState": "ACTIVE"}

    def _get_policy(self, words: Values, body: Values) -> Values:
        return {"version": 1, "bindings": self.roles}

    def _set_policy(self, words: Values, body: Values) -> Values:
        self.roles = body["policy"]["bindings"]
        return {"bindings": self.roles}

    def _account(self, words: Values, body: Values) -> Values:
        return self._found(self._accounts, words["account"])

    def _create_account(self, words: Values, body: Values) -> Values:
        email = f"{body['accountId']}@{words['project']}.iam.gserviceaccount.com"
        self._accounts[email] = {"email": email, "projectId": words["project"]}
        return self._accounts[email]

    def _compute_project(self, words: Values, body: Values) -> Values:
        return {"name": words["project"], "commonInstanceMetadata": self._metadata}

    def _set_metadata(self, words: Values, body: Values) -> Values:
        self._metadata = body
        keys = [item["value"] for item in body["items"] if item["key"] == "ssh-keys"]
        # `user:key user`, as Google keeps them.
        self._authorized_keys.write_text("".join(f"{line.partition(':')[2]}\n" for line in "\n".join(keys).split("\n")))
        return _started("keys")

    def _subnets(self, words: Values, body: Values) -> Values:
        return {"items": [{"selfLink": f"regions/{words['region']}/subnetworks/default"}]}

    def _operation(self, words: Values, body: Values) -> Values:
        machine = self.machines.get(words["name"].removeprefix("insert-"))
        if machine is not None and machine["status"] == "PROVISIONING":
            machine["status"] = "RUNNING"
        return {"name": words["name"], "status": "DONE"}

    def _instances(self, words: Values, body: Values) -> Values:
        (asked,) = self._query["filter"]
        labels = dict(re.findall(r"labels\.([-\w]+) = ([-\w]+)", asked))
        states = re.findall(r"status = (\w+)", asked)
        found = [
            machine
            for machine in self.machines.values()
            if machine["status"] in states and labels.items() <= machine["labels"].items()
        ]
        return {"items": found} if found else {}

    def _insert(self, words: Values, body: Values) -> Values:
        zone = words["zone"]
        if not body["machineType"].startswith(f"zones/{zone}/machineTypes/"):
            raise Refused(400, f"Invalid value for field 'resource.machineType': '{body['machineType']}'")
        if not any(disk.get("boot") for disk in body.get("disks", ())):
            raise Refused(400, "Invalid value for field 'resource.disks': one must be the boot disk")
        if wrong := [value for value in body["labels"].values() if not _LABEL.fullmatch(value)]:
            raise Refused(400, f"Invalid value for field 'resource.labels': {wrong}")
        address = f"127.0.0.{len(self.machines) + 10}"
        network = [{"networkIP": address, "accessConfigs": [{"natIP": address}]}]
        self.machines[body["name"]] = {
            **body,
            "status": "PROVISIONING",
            "labelFingerprint": "0",
            "networkInterfaces": network,
        }
        return _started(f"insert-{body['name']}")

    def _instance(self, words: Values, body: Values) -> Values:
        machine = self._found(self.machines, words["name"])
        if machine["status"] == "DELETED":
            raise Refused(404, f"{words['name']} was not found")
        return machine

    def _delete(self, words: Values, body: Values) -> Values:
        self._instance(words, body)["status"] = "DELETED"
        return _started(f"delete-{words['name']}")

    def _set_labels(self, words: Values, body: Values) -> Values:
        self._instance(words, body)["labels"] = body["labels"]
        return _started(f"labels-{words['name']}")

    def _found(self, known: dict[str, Values], name: str) -> Values:
        if name not in known:
            raise Refused(404, f"{name} was not found")
        return known[name]


def _started(name: str) -> Values:
    return {"name": name, "status": "RUNNING"}


def serve(fake: FakeGce, certificate: Path, key: Path) -> None:
    """Answer HTTPS requests on loopback from now on, in a thread."""
    lock = threading.Lock()

    class Answers(BaseHTTPRequestHandler):
        """Answers with JSON."""

        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            is_json = self.headers.get("Content-Type", "").startswith("application/json")
            try:
                with lock:
                    status, values = 200, fake.answer(self.command, self.path, json.loads(text) if is_json else {})
            except Refused as error:
                status, values = error.status, {"error": {"code": error.status, "message": str(error)}}
            reply = json.dumps(values).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        do_GET = do_POST = do_DELETE = _answer  # noqa: N815 - the names that http.server calls

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 443), Answers)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
