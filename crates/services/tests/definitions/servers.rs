//! Who is asked, and how?

use http::Request;
use loadline_api::{ocm, qos};
use loadline_apiserver::{ApiServer, Config};
use loadline_testkit::ControlPlane;
use serde_json::{Value, json};
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tower::ServiceExt as _;

/// A server that knows all definitions.
pub enum Server {
    Ours(ApiServer, Runtime),
    Real(Box<ControlPlane>),
}

static OURS: LazyLock<Server> = LazyLock::new(|| {
    Server::Ours(ApiServer::new(Config::default()), Runtime::new().expect("a runtime")).with_definitions()
});

static REAL: LazyLock<Option<Server>> =
    LazyLock::new(|| Some(Server::Real(Box::new(ControlPlane::start_or_skip()?)).with_definitions()));

/// Ours, and the real one if it is there.
pub fn both() -> Vec<&'static Server> {
    std::iter::once(&*OURS).chain(REAL.as_ref()).collect()
}

/// The longest wait for a definition to be served.
const PATIENCE: Duration = Duration::from_mins(1);

impl Server {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ours(..) => "ours",
            Self::Real(_) => "kube-apiserver",
        }
    }

    pub fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        match self {
            Self::Real(plane) => {
                let reply = plane.request(method, path, body).expect("an answer");
                (reply.status, reply.json())
            }
            Self::Ours(server, runtime) => {
                let body = axum::body::Body::from(body.map(Value::to_string).unwrap_or_default());
                let request = Request::builder().method(method).uri(path);
                let request = request.header("Content-Type", "application/json").body(body);
                let request = request.expect("a request");
                runtime.block_on(async {
                    let response = server.clone().oneshot(request).await.expect("an answer");
                    let status = response.status().as_u16();
                    let body = axum::body::to_bytes(response.into_body(), usize::MAX).await;
                    (status, serde_json::from_slice(&body.expect("a body")).unwrap_or_default())
                })
            }
        }
    }

    fn with_definitions(self) -> Self {
        let list = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let definitions = ocm::DEFINITIONS.iter().chain(&qos::DEFINITIONS);
        let mut served = Vec::new();
        for text in definitions {
            let definition: Value = serde_saphyr::from_str(text).expect("YAML");
            let (status, answer) = self.ask("POST", list, Some(&definition));
            assert_eq!(status, 201, "{}: {}", self.name(), answer["message"]);
            let spec = &definition["spec"];
            for version in spec["versions"].as_array().expect("versions") {
                let part = |value: &Value| value.as_str().expect("a name").to_owned();
                let names = [&spec["group"], &version["name"], &spec["names"]["plural"]].map(part);
                served.push(format!("/apis/{}", names.join("/")));
            }
        }
        // A resource is served some time after it was defined, and no event tells when.
        let started = Instant::now();
        for path in served {
            while self.ask("GET", &path, None).0 != 200 {
                assert!(started.elapsed() < PATIENCE, "{}: {path} is not served", self.name());
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        let (status, answer) =
            self.ask("POST", "/api/v1/namespaces", Some(&json!({"metadata": {"name": "ns1"}})));
        assert_eq!(status, 201, "{}: {}", self.name(), answer["message"]);
        self
    }

    /// Makes the object, with its status. What is not taken is told in the words of the server.
    pub fn create(&self, object: &Value) -> (u16, String) {
        let list = list(object);
        let (mut status, mut answer) = self.ask("POST", &list, Some(object));
        if status == 409 {
            // Files repeat what they share.
            self.ask("DELETE", &one(object), None);
            (status, answer) = self.ask("POST", &list, Some(object));
        }
        if status == 201 && object.get("status").is_some() {
            let mut whole = answer;
            whole["status"] = object["status"].clone();
            (status, answer) = self.ask("PUT", &format!("{}/status", one(object)), Some(&whole));
        }
        (status, words(&answer))
    }

    /// Makes the object, and tells what is stored.
    pub fn stored(&self, object: &Value) -> Value {
        let (status, words) = self.create(object);
        assert!(status < 300, "{}: {words}", self.name());
        let stored = self.stored_already(object);
        self.remove(object);
        stored
    }

    /// What is stored under the name of the object.
    pub fn stored_already(&self, object: &Value) -> Value {
        let (status, stored) = self.ask("GET", &one(object), None);
        assert_eq!(status, 200, "{}: {}", self.name(), stored["message"]);
        stored
    }

    /// Whether it is there or not.
    pub fn remove(&self, object: &Value) {
        self.ask("DELETE", &one(object), None);
    }

    /// Makes `before`, and of it `after`.
    pub fn change(&self, before: &Value, change: impl Fn(&Value) -> Value) -> (u16, String) {
        let (status, taken) = self.ask("POST", &list(before), Some(before));
        assert_eq!(status, 201, "{}: {}", self.name(), taken["message"]);
        let (status, answer) = self.ask("PUT", &one(before), Some(&change(&taken)));
        self.ask("DELETE", &one(before), None);
        (status, words(&answer))
    }
}

fn words(answer: &Value) -> String {
    answer["message"].as_str().unwrap_or_default().to_owned()
}

/// The address of all objects of this kind.
fn list(object: &Value) -> String {
    let kind = object["kind"].as_str().expect("a kind");
    let version = object["apiVersion"].as_str().expect("a version");
    // Plurals here are regular.
    let plural = format!("{}s", kind.to_lowercase());
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("/apis/{version}/namespaces/{namespace}/{plural}"),
        None => format!("/apis/{version}/{plural}"),
    }
}

fn one(object: &Value) -> String {
    format!("{}/{}", list(object), object["metadata"]["name"].as_str().expect("a name"))
}
