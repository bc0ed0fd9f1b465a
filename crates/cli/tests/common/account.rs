//! An account that may do what a shipped file says, and nothing else.

#![allow(dead_code, reason = "each test binary uses its own part of this")]

use crate::service::until;
use loadline_testkit::ControlPlane;
use serde_json::{Value, json};

/// Makes the service account of a file with its rights, word for word; gives a kubeconfig with a token of it.
pub fn least_privilege(plane: &ControlPlane, shipped: &str, account: &str) -> String {
    for text in shipped.split("\n---\n") {
        let object: Value = serde_saphyr::from_str(text).unwrap();
        let kind = object["kind"].as_str().unwrap();
        let group = match kind {
            "ServiceAccount" => "/api/v1",
            "ClusterRole" | "ClusterRoleBinding" | "Role" | "RoleBinding" => {
                "/apis/rbac.authorization.k8s.io/v1"
            }
            _ => continue,
        };
        let namespace = object["metadata"]["namespace"].as_str().map(|name| format!("/namespaces/{name}"));
        let path = format!("{group}{}/{}s", namespace.unwrap_or_default(), kind.to_lowercase());
        // Its namespace comes a moment after the server.
        until("the account", || plane.create(&path, &object).ok());
    }
    let path = format!("/api/v1/namespaces/kube-system/serviceaccounts/{account}/token");
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let granted = plane.create(&path, &request).unwrap();
    let text = std::fs::read_to_string(plane.kubeconfig()).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config["users"][0]["user"] = json!({"token": granted["status"]["token"]});
    let file = plane.folder().join(account);
    std::fs::write(&file, config.to_string()).unwrap();
    file.display().to_string()
}
