//! Do API servers take our definitions, and the objects that are meant to be taken, and no others?
//!
//! Every verdict is asked of two servers: a real kube-apiserver, if it is there, and ours. Both must give it, in the same
//! words.
//!
//! | question | module |
//! |---|---|
//! | who is asked, and how? | `servers` |
//! | what is changed about a good object? | `edit` |
//! | placements, clusters, sets | `ocm` |
//! | lines, actions, pods | `qos` |

mod edit;
mod ocm;
mod qos;
mod servers;

use loadline_api::{ocm as ocm_api, qos as qos_api};
use serde_json::{Value, json};
use servers::Server;

#[test]
fn every_definition_is_taken_as_it_is() {
    for server in servers::both() {
        for text in ocm_api::DEFINITIONS.iter().chain(&qos_api::DEFINITIONS) {
            let ours: Value = serde_saphyr::from_str(text).unwrap();
            let name = ours["metadata"]["name"].as_str().unwrap();
            let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
            let taken = server.ask("GET", &path, None).1;
            let condition = |kind: &str| {
                let conditions = taken["status"]["conditions"].as_array().into_iter().flatten();
                conditions.into_iter().find(|c| c["type"] == kind).map(|c| c["status"].clone())
            };
            assert_eq!(condition("Established"), Some(json!("True")), "{} {name}", server.name());
            assert_eq!(condition("NonStructuralSchema"), None, "{} {name}: {taken}", server.name());
            assert_eq!(taken["spec"]["versions"], ours["spec"]["versions"], "{} {name}", server.name());
            assert_eq!(taken["spec"]["names"], ours["spec"]["names"], "{} {name}", server.name());
        }
    }
}

/// Files in the shapes other projects' own examples have.
#[test]
fn objects_as_other_projects_write_them_are_taken() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/others");
    let mut taken = 0;
    for file in ["crane/qos.yaml", "ocm/placement.yaml", "ocm/hub.yaml"] {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        for object in serde_saphyr::from_multiple::<Value>(&text).unwrap() {
            let group = object["apiVersion"].as_str().unwrap_or_default();
            let ours = group.starts_with(ocm_api::GROUP) || group.starts_with(qos_api::GROUP);
            if !ours {
                continue;
            }
            for server in servers::both() {
                if let Some(namespace) = object["metadata"]["namespace"].as_str() {
                    let body = json!({"metadata": {"name": namespace}});
                    server.ask("POST", "/api/v1/namespaces", Some(&body));
                }
            }
            let (status, words) = verdicts(|server| server.create(&object));
            assert!(status < 300, "{file}: {}: {words}", object["metadata"]["name"]);
            taken += 1;
        }
    }
    assert_eq!(taken, 5 + 3 + 4, "lines, actions and scopes; a placement and its set; clusters and scores");
}

/// Asks both servers the same, and compares their answers with each other.
fn verdicts(ask: impl Fn(&Server) -> (u16, String)) -> (u16, String) {
    let mut answers = servers::both().into_iter().map(|server| (server.name(), ask(server)));
    let (_, first) = answers.next().expect("ours is always there");
    for (name, other) in answers {
        assert_eq!(first, other, "ours, and {name}");
    }
    first
}
