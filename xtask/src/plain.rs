//! The chart without Helm: one file for each component, for `kubectl apply`.
//!
//! What stands in them is what the chart comes to, rendered by the real Helm with the values below; so there is one place where
//! a component's account, ports and mounts are said. Without Helm on this machine they are not compared.

use crate::control_plane;
use crate::fresh::Mode;
use anyhow::{Context as _, Result, bail};
use loadline_testkit::parts::{self, Group};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// One file.
struct Plain {
    /// Below `deploy`.
    file: &'static str,
    namespace: &'static str,
    /// What whoever opens it has to know first.
    about: &'static [&'static str],
    values: fn() -> Value,
}

/// Where all but those of a hub run.
const SYSTEM: &str = "kube-system";
const HUB: &str = "open-cluster-management-hub";

const KINDS_FIRST: &str =
    "First apply the kinds of its rules: deploy/crds/{nodeqoss,podqoss,avoidanceactions}.yaml.";

const FILES: &[Plain] = &[
    Plain {
        file: "agent/agent.yaml",
        namespace: SYSTEM,
        about: &[
            "`loadline agent` on every node. It only says what it would do: act.yaml lets it.",
            KINDS_FIRST,
        ],
        values: || json!({"agent": {"enabled": true}}),
    },
    Plain {
        file: "agent/act.yaml",
        namespace: SYSTEM,
        about: &[
            "`loadline agent` on every node, which throttles and evicts by the rules of the cluster.",
            KINDS_FIRST,
        ],
        values: || json!({"agent": {"enabled": true, "act": true}}),
    },
    Plain {
        file: "annotator/annotator.yaml",
        namespace: SYSTEM,
        about: &["`loadline annotator`: writes on nodes how loaded they are. Not beside crane's."],
        values: || json!({"annotator": {"enabled": true}}),
    },
    Plain {
        file: "dashboard/dashboard.yaml",
        namespace: SYSTEM,
        about: &[
            "`loadline dashboard`, for whoever has the token. It wants a certificate and a token, in two Secrets:",
            "  kubectl -n kube-system create secret tls loadline-dashboard-tls --cert=tls.crt --key=tls.key",
            "  kubectl -n kube-system create secret generic loadline-dashboard-token --from-file=token",
            "Then: kubectl -n kube-system port-forward deployment/loadline-dashboard 8443, and open",
            "https://127.0.0.1:8443/?token=TOKEN once.",
        ],
        values: || {
            json!({"dashboard": {"enabled": true, "secretName": "loadline-dashboard-tls",
                "tokenSecret": "loadline-dashboard-token"}})
        },
    },
    Plain {
        file: "estimator/estimator.yaml",
        namespace: "karmada-system",
        about: &[
            "`loadline estimator` for the cluster it runs in, which Karmada calls member1, in place of",
            "karmada-scheduler-estimator: the same Service, the same Secret with tls.crt, tls.key and ca.crt.",
        ],
        values: || {
            json!({"estimator": {"enabled": true, "clusterName": "member1",
                "serviceName": "karmada-scheduler-estimator-member1", "secretName": "karmada-scheduler-estimator-cert"}})
        },
    },
    Plain {
        file: "fleet/karmada.yaml",
        namespace: "karmada-system",
        about: &[
            "`loadline fleet --api karmada`: decides about bindings, in the control plane of the kubeconfig in the Secret.",
        ],
        values: || json!({"fleet": {"enabled": true, "api": "karmada", "kubeconfigSecret": "karmada-kubeconfig"}}),
    },
    Plain {
        file: "fleet/ocm.yaml",
        namespace: HUB,
        about: &[
            "`loadline fleet --api ocm` in the hub. It runs in the namespace of Open Cluster Management's own controllers and",
            "shares the lease of its placement controller, so that only one of the two ever writes.",
        ],
        values: || json!({"fleet": {"enabled": true, "replicas": 1, "lease": {"name": "placement-lock", "namespace": HUB}}}),
    },
    Plain {
        file: "fleet/publish.yaml",
        namespace: SYSTEM,
        about: &[
            "`loadline fleet --publish` in a member, which the hub calls member1, with a kubeconfig of the hub in the Secret.",
        ],
        values: || json!({"fleet": {"enabled": true, "api": "publish", "clusterName": "member1", "kubeconfigSecret": "hub-kubeconfig"}}),
    },
    Plain {
        file: "rebalance/rebalance.yaml",
        namespace: SYSTEM,
        about: &["`loadline rebalance`: says which pods it would move. act.yaml lets it."],
        values: || json!({"rebalance": {"enabled": true}}),
    },
    Plain {
        file: "rebalance/act.yaml",
        namespace: SYSTEM,
        about: &[
            "`loadline rebalance`, which moves pods away from nodes over their line, within disruption budgets.",
        ],
        values: || json!({"rebalance": {"enabled": true, "act": true}}),
    },
    Plain {
        file: "recommender/recommender.yaml",
        namespace: SYSTEM,
        about: &[
            "`loadline recommender`: learns what workloads use. First apply the kind it writes: deploy/crds/recommendations.yaml.",
        ],
        values: || json!({"recommender": {"enabled": true}}),
    },
    Plain {
        file: "scheduler/scheduler.yaml",
        namespace: SYSTEM,
        about: &[
            "`loadline scheduler` beside the scheduler you have, for pods with `schedulerName: loadline`; of two one leads.",
            "`loadline config print` shows everything its configuration can say. It is read again when it changes.",
        ],
        values: || json!({"scheduler": {"enabled": true, "mode": "active", "config": CONFIGURATION}}),
    },
    Plain {
        file: "scheduler/shadow.yaml",
        namespace: SYSTEM,
        about: &["`loadline scheduler --shadow`: looks on beside the scheduler you have and writes nothing."],
        values: || json!({"scheduler": {"enabled": true, "mode": "shadow"}}),
    },
];

const CONFIGURATION: &str = "apiVersion: loadline.dev/v1alpha1
kind: SchedulerConfiguration
profiles:
  - schedulerName: loadline
";

/// What is said by Helm for Helm, and what would change with every version.
const LEFT_OUT: [&str; 5] = [
    "# Source:",
    "app.kubernetes.io/instance:",
    "app.kubernetes.io/version:",
    "app.kubernetes.io/managed-by:",
    "helm.sh/chart:",
];

/// Makes the files anew below `root`, or compares.
pub fn run(root: &Path, mode: Mode) -> Result<()> {
    if mode == Mode::Compare && parts::find("helm").is_err() {
        return Ok(());
    }
    if parts::find("helm").is_err() {
        control_plane::ensure(&[Group::Node])?;
    }
    let helm = parts::find("helm")?;
    let mut stale = Vec::new();
    for plain in FILES {
        let path = root.join("deploy").join(plain.file);
        let text = plain.render(&helm, &root.join("deploy/chart"))?;
        if mode == Mode::Write {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
            }
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        } else if fs::read_to_string(&path).ok() != Some(text) {
            stale.push(plain.file);
        }
    }
    if !stale.is_empty() {
        bail!("not fresh in deploy: {}; run `cargo xtask codegen plain`", stale.join(", "));
    }
    Ok(())
}

impl Plain {
    fn render(&self, helm: &Path, chart: &Path) -> Result<String> {
        let mut command = Command::new(helm);
        command.args(["template", "loadline"]).arg(chart);
        command.args(["-n", self.namespace, "--kube-version", "1.36", "--no-hooks", "--values", "-"]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cannot start helm")?;
        // Helm reads it all before it says anything.
        let values = only((self.values)()).to_string();
        child.stdin.take().context("helm takes no values")?.write_all(values.as_bytes())?;
        let output = child.wait_with_output().context("cannot wait for helm")?;
        if !output.status.success() {
            bail!("helm template for {} ended with {}", self.file, output.status);
        }
        Ok(self.text(&String::from_utf8_lossy(&output.stdout)))
    }

    /// What Helm rendered, as a file of ours.
    fn text(&self, rendered: &str) -> String {
        let mut text = String::from("# Made from deploy/chart by `cargo xtask codegen plain`.\n#\n");
        for line in self.about {
            let _ = writeln!(text, "# {line}");
        }
        text.push_str("# Name your image. Its account may do what is listed here, and no more.\n");
        let kept = rendered.lines().map(str::trim_end).filter(|line| {
            !line.is_empty() && !LEFT_OUT.iter().any(|start| line.trim_start().starts_with(start))
        });
        // What comes first needs no line before it.
        for line in kept.skip_while(|line| *line == "---") {
            let line = match line.split_once("image: loadline:") {
                Some((before, _)) => format!("{before}image: loadline"),
                None => line.to_owned(),
            };
            text.push_str(&line);
            text.push('\n');
        }
        text
    }
}

/// These values, and nothing of the chart that is not asked for.
fn only(values: Value) -> Value {
    let mut all =
        json!({"crds": {"install": false}, "priorityClass": {"create": false}, "log": {"format": "json"}});
    for component in ["scheduler", "annotator", "recommender", "agent"] {
        all[component] = json!({"enabled": false});
    }
    if let Value::Object(values) = values {
        for (name, value) in values {
            all[name] = value;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_helm_needs_is_left_out() {
        let plain = Plain { file: "a/a.yaml", namespace: "n", about: &["It does a."], values: || json!({}) };
        let rendered = "---\n# Source: loadline/templates/a.yaml\nkind: A\nlabels:\n  app.kubernetes.io/name: loadline\n  \
                        app.kubernetes.io/version: \"0.1.0\"\n  helm.sh/chart: loadline-0.1.0\n\n---\n# Source: x\nkind: B\n\
                        - image: loadline:0.1.0\n";
        let text = plain.text(rendered);
        assert_eq!(
            text,
            "# Made from deploy/chart by `cargo xtask codegen plain`.\n#\n# It does a.\n# Name your image. Its account may do \
             what is listed here, and no more.\nkind: A\nlabels:\n  app.kubernetes.io/name: loadline\n---\nkind: B\n- image: loadline\n"
        );
    }

    #[test]
    fn nothing_but_what_is_asked_for_is_on() {
        let values = only(json!({"agent": {"enabled": true}}));
        let on: Vec<&str> = ["scheduler", "annotator", "recommender", "agent"]
            .into_iter()
            .filter(|name| values[*name]["enabled"] == true)
            .collect();
        assert_eq!(on, ["agent"]);
    }

    #[test]
    fn every_file_of_a_component_is_made_here() {
        let root = crate::shell::root().join("deploy");
        for plain in FILES {
            let path = root.join(plain.file);
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.starts_with("# Made from deploy/chart"), "{}", plain.file);
            for file in fs::read_dir(path.parent().unwrap()).unwrap() {
                let path = file.unwrap().path();
                let name = path.strip_prefix(&root).unwrap().display().to_string();
                assert!(FILES.iter().any(|plain| plain.file == name), "{name} is made by nobody");
            }
        }
    }
}
