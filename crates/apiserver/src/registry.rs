//! Which resources the server knows: the recorded built-in ones and those that definitions add at run time.

mod custom;

use crate::schema::{self, View};
use crate::status::Subject;
use crate::store::TableId;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

pub(crate) use custom::{Custom, ScalePaths, established};

/// One resource at one version.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Resource {
    /// API group, empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Plural name, as in paths.
    #[serde(rename = "resource")]
    pub plural: String,
    /// Singular name.
    pub singular: String,
    /// Kind.
    pub kind: String,
    /// Kind of its lists; empty is `<kind>List`.
    #[serde(default)]
    pub list_kind: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Verbs it understands.
    pub verbs: Vec<String>,
    /// Short names.
    #[serde(default)]
    pub short_names: Vec<String>,
    /// Groups of resources such as `all`.
    #[serde(default)]
    pub categories: Vec<String>,
    /// Paths below an object.
    #[serde(default)]
    pub subresources: Vec<Subresource>,
    /// Set for resources that come from a definition.
    #[serde(skip)]
    pub custom: Option<Arc<Custom>>,
    /// Where its objects live.
    #[serde(skip, default = "no_table")]
    pub table: TableId,
    /// Fields that field selectors may name, beside name and namespace.
    #[serde(skip)]
    pub fields: Arc<[String]>,
}

/// A path below an object, such as `status`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Subresource {
    /// Last part of the path.
    pub name: String,
    /// Kind it speaks.
    pub kind: String,
    /// Group of that kind; empty is the resource's own.
    #[serde(default)]
    pub group: String,
    /// Version of that kind; empty is the resource's own.
    #[serde(default)]
    pub version: String,
    /// Verbs it understands.
    pub verbs: Vec<String>,
}

fn no_table() -> TableId {
    "".into()
}

impl Resource {
    /// How errors name it.
    #[must_use]
    pub(crate) fn subject(&self) -> Subject<'_> {
        Subject { group: &self.group, resource: &self.plural, kind: &self.kind }
    }

    /// `v1` or `apps/v1`.
    #[must_use]
    pub(crate) fn api_version(&self) -> String {
        group_version(&self.group, &self.version)
    }

    /// Kind of a list of it.
    #[must_use]
    pub(crate) fn list_kind(&self) -> String {
        if self.list_kind.is_empty() { format!("{}List", self.kind) } else { self.list_kind.clone() }
    }

    /// Whether it understands a verb.
    #[must_use]
    pub(crate) fn allows(&self, verb: &str) -> bool {
        self.verbs.iter().any(|v| v == verb)
    }

    /// A path below its objects.
    #[must_use]
    pub(crate) fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|s| s.name == name)
    }

    /// Whether objects are kept in the form of this version. Events are kept in the core form, autoscalers in that of
    /// their newer version, which can say more.
    #[must_use]
    pub(crate) fn is_stored_form(&self) -> bool {
        match &self.custom {
            Some(custom) => custom.storage,
            None => self.group != "events.k8s.io" && !self.is_older_autoscaler(),
        }
    }

    /// `autoscaling/v1`, the only built-in kind with two versions.
    #[must_use]
    pub(crate) fn is_older_autoscaler(&self) -> bool {
        self.group == "autoscaling" && self.version == "v1" && self.plural == "horizontalpodautoscalers"
    }

    /// Schema of its objects; `None` where there is none.
    #[must_use]
    pub(crate) fn schema(&self) -> Option<View<'_>> {
        match &self.custom {
            Some(custom) => custom.schema(),
            None => schema::builtin::kind(&self.group, &self.version, &self.kind),
        }
    }
}

/// `v1` or `apps/v1`.
#[must_use]
pub(crate) fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// Selectable fields of the built-in kinds, beside name and namespace.
const FIELDS: &[(&str, &[&str])] = &[
    (
        "/pods",
        &[
            "spec.nodeName",
            "status.phase",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.podIP",
            "status.nominatedNodeName",
        ],
    ),
    ("/nodes", &["spec.unschedulable"]),
    ("/namespaces", &["status.phase"]),
    ("/secrets", &["type"]),
    ("/replicationcontrollers", &["status.replicas"]),
    (
        "/events",
        &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source.component",
            "type",
        ],
    ),
    ("apps/replicasets", &["status.replicas"]),
    ("batch/jobs", &["status.successful"]),
    ("certificates.k8s.io/certificatesigningrequests", &["spec.signerName"]),
    ("resource.k8s.io/resourceslices", &["spec.nodeName", "spec.driver"]),
];

static BUILT_IN: LazyLock<Vec<Arc<Resource>>> = LazyLock::new(|| {
    let mut all: Vec<Resource> = serde_json::from_str(include_str!("../recorded/resources.json"))
        .expect("resources.json is part of the source and a test parses it");
    for resource in &mut all {
        // Both groups of events show the same objects; they are kept in the core form.
        let group = if resource.plural == "events" { "" } else { &resource.group };
        resource.table = format!("{group}/{}", resource.plural).into();
        let fields = FIELDS.iter().find(|(table, _)| *table == resource.table.as_ref());
        resource.fields =
            fields.map(|(_, f)| f.iter().map(ToString::to_string).collect()).unwrap_or_default();
    }
    all.into_iter().map(Arc::new).collect()
});

/// All resources at one moment. Cheap to clone and to replace as definitions come and go.
#[derive(Debug, Clone)]
pub(crate) struct Registry {
    by_path: BTreeMap<(String, String, String), Arc<Resource>>,
    groups: Vec<Group>,
}

/// An API group and its versions, the preferred one first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    /// Name, empty for the core group.
    pub name: String,
    /// Versions, preferred first.
    pub versions: Vec<String>,
}

impl Default for Registry {
    fn default() -> Self {
        Self::with_custom(&[])
    }
}

impl Registry {
    /// The built-in resources and these custom ones.
    #[must_use]
    pub(crate) fn with_custom(custom: &[Arc<Resource>]) -> Self {
        let mut by_path = BTreeMap::new();
        let mut groups: Vec<Group> = Vec::new();
        for resource in BUILT_IN.iter().chain(custom) {
            let path = (resource.group.clone(), resource.version.clone(), resource.plural.clone());
            by_path.entry(path).or_insert_with(|| resource.clone());
            match groups.iter_mut().find(|g| g.name == resource.group) {
                Some(group) if group.versions.contains(&resource.version) => {}
                Some(group) => group.versions.push(resource.version.clone()),
                None => groups
                    .push(Group { name: resource.group.clone(), versions: vec![resource.version.clone()] }),
            }
        }
        for group in &mut groups {
            group.versions.sort_by_key(|v| std::cmp::Reverse(custom::version_priority(v)));
        }
        Self { by_path, groups }
    }

    /// The resource at a path.
    #[must_use]
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.by_path.get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// The resource whose objects live in this table, at the version they are stored in.
    #[must_use]
    pub(crate) fn of_table(&self, table: &str) -> Option<&Arc<Resource>> {
        let mut found = self.by_path.values().filter(|r| r.table.as_ref() == table);
        let first = found.next()?;
        Some(std::iter::once(first).chain(found).find(|r| r.is_stored_form()).unwrap_or(first))
    }

    /// The resource that serves a kind.
    #[must_use]
    pub(crate) fn of_kind(&self, group: &str, version: &str, kind: &str) -> Option<&Arc<Resource>> {
        let serves = |r: &&Arc<Resource>| {
            r.group == group && r.version == version && r.kind == kind && r.allows("get")
        };
        self.by_path.values().find(serves)
    }

    /// All resources of a group version, by name.
    pub(crate) fn resources<'a>(
        &'a self,
        group: &'a str,
        version: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Resource>> {
        self.by_path.iter().filter(move |((g, v, _), _)| g == group && v == version).map(|(_, r)| r)
    }

    /// All resources.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.by_path.values()
    }

    /// All groups, the core group first, then in the order of the record.
    #[must_use]
    pub(crate) fn groups(&self) -> &[Group] {
        &self.groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorded_resources_parse_and_are_found_by_path() {
        let registry = Registry::default();
        let pods = registry.find("", "v1", "pods").expect("built in");
        assert_eq!((pods.kind.as_str(), pods.namespaced, pods.table.as_ref()), ("Pod", true, "/pods"));
        assert!(pods.subresource("eviction").is_some());
        assert_eq!(
            registry.find("apps", "v1", "deployments").expect("built in").list_kind(),
            "DeploymentList"
        );
    }

    #[test]
    fn both_versions_of_autoscalers_share_one_table() {
        let registry = Registry::default();
        let older = registry.find("autoscaling", "v1", "horizontalpodautoscalers").expect("built in");
        let newer = registry.find("autoscaling", "v2", "horizontalpodautoscalers").expect("built in");
        assert_eq!(older.table, newer.table);
        assert_eq!(registry.of_table(&older.table).expect("there").version, "v2");
        let groups = registry.groups().iter().find(|group| group.name == "autoscaling").expect("there");
        assert_eq!(groups.versions, ["v2", "v1"], "clients take the newer one");
    }

    #[test]
    fn both_groups_of_events_share_one_table() {
        let registry = Registry::default();
        let core = registry.find("", "v1", "events").expect("built in");
        let newer = registry.find("events.k8s.io", "v1", "events").expect("built in");
        assert_eq!(core.table, newer.table);
        assert_eq!(registry.of_table("/events").expect("there").group, "", "the core form is the stored one");
    }
}
