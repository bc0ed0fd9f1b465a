use super::*;
use crate::schema::builtin;
use serde_json::json;

fn pod(text: &str) -> Result<Decoded, DecodeError> {
    typed(builtin::kind("", "v1", "Pod").unwrap(), text.as_bytes())
}

fn deployment(text: &str) -> Result<Decoded, DecodeError> {
    typed(builtin::kind("apps", "v1", "Deployment").unwrap(), text.as_bytes())
}

#[test]
fn unknown_and_duplicate_fields_are_listed_in_the_order_of_the_text() {
    let decoded = pod(r#"{"zoo":1,"spec":{"foo":1,"nodeName":"a","nodeName":"b",
            "containers":[{"name":"c","bar":{"x":1},"bar":2}]},"metadata":{"labels":{"a":"1","a":"2"}}}"#)
    .unwrap();
    assert_eq!(
        decoded.strict,
        [
            r#"unknown field "zoo""#,
            r#"unknown field "spec.foo""#,
            r#"duplicate field "spec.nodeName""#,
            r#"unknown field "spec.containers[0].bar""#,
            r#"duplicate field "metadata.labels.a""#,
        ]
    );
    assert_eq!(
        decoded.value,
        json!({"spec": {"nodeName": "b", "containers": [{"name": "c"}]}, "metadata": {"labels": {"a": "2"}}})
    );
}

#[test]
fn wrong_types_are_told_as_go_tells_them() {
    for (text, want, why) in [
        (
            r#"{"spec":{"nodeName":1}}"#,
            "json: cannot unmarshal number into Go struct field PodSpec.spec.nodeName of type string",
            "a number for a string",
        ),
        (
            r#"{"spec":{"restartPolicy":1}}"#,
            "json: cannot unmarshal number into Go struct field PodSpec.spec.restartPolicy of type v1.RestartPolicy",
            "a named type",
        ),
        (
            r#"{"spec":{"containers":{}}}"#,
            "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
            "an object for a list",
        ),
        (
            r#"{"spec":"x"}"#,
            "json: cannot unmarshal string into Go struct field Pod.spec of type v1.PodSpec",
            "a string for a struct",
        ),
        (
            r#"{"metadata":{"labels":{"a":1}}}"#,
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
            "a value of a map",
        ),
        (
            r#"{"metadata":{"creationTimestamp":5}}"#,
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
            "a number for a time",
        ),
        (
            r#"{"spec":{"volumes":[{"emptyDir":3}]}}"#,
            "json: cannot unmarshal number into Go struct field Volume.spec.volumes.VolumeSource.emptyDir of type \
             v1.EmptyDirVolumeSource",
            "a field of an embedded struct",
        ),
        (
            r#"{"spec":{"activeDeadlineSeconds":1.5}}"#,
            "json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.activeDeadlineSeconds of type int64",
            "a fraction for an integer",
        ),
        (
            r#"{"spec":{"containers":[{"ports":[{"containerPort":4294967296}]}]}}"#,
            "json: cannot unmarshal number 4294967296 into Go struct field \
             ContainerPort.spec.containers.ports.containerPort of type int32",
            "an integer too large",
        ),
        (
            r#"{"spec":{"containers":[{"resources":{"limits":{"cpu":"abc"}}}]}}"#,
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            "not an amount",
        ),
        (
            r#"{"kind":1}"#,
            "json: cannot unmarshal number into Go struct field Pod.TypeMeta.kind of type string",
            "a field of the embedded type data",
        ),
        ("[]", "json: cannot unmarshal array into Go value of type v1.Pod", "not an object"),
        (r#"{"spec":"#, "unexpected end of JSON input", "half a body"),
        (r"{x}", "invalid character 'x' looking for beginning of object key string", "not JSON"),
    ] {
        assert_eq!(pod(text).unwrap_err().0, want, "{why}");
    }
    assert_eq!(
        deployment(r#"{"spec":{"replicas":"3"}}"#).unwrap_err().0,
        "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"
    );
    assert_eq!(
        deployment(r#"{"spec":{"strategy":{"rollingUpdate":{"maxSurge":true}}}}"#).unwrap_err().0,
        "json: cannot unmarshal bool into Go struct field \
         RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32"
    );
}

#[test]
fn amounts_and_times_come_back_as_go_writes_them() {
    let decoded =
        pod(r#"{"metadata":{"creationTimestamp":null,"deletionTimestamp":"2024-01-01T01:00:00+01:00"},
            "spec":{"containers":[{"resources":{"limits":{"cpu":0.5,"memory":"1024Mi","x":null}}}]}}"#)
        .unwrap();
    assert_eq!(
        decoded.value,
        json!({
            "metadata": {"deletionTimestamp": "2024-01-01T00:00:00Z"},
            "spec": {"containers": [{"resources": {"limits": {"cpu": "500m", "memory": "1Gi", "x": "0"}}}]},
        })
    );
}

#[test]
fn values_decode_like_text() {
    let view = builtin::kind("", "v1", "Pod").unwrap();
    let value = json!({"spec": {"nodeName": "a", "foo": {"bar": 1}}});
    let decoded = typed_value(view, value).unwrap();
    assert_eq!(decoded.value, json!({"spec": {"nodeName": "a"}}));
    assert_eq!(decoded.strict, [r#"unknown field "spec.foo""#]);
}

#[test]
fn bodies_without_a_type_keep_everything_and_report_duplicates() {
    let decoded = untyped(br#"{"spec":{"a":[{"b":1,"b":null}]}}"#).unwrap();
    assert_eq!(decoded.value, json!({"spec": {"a": [{"b": null}]}}));
    assert_eq!(decoded.strict, [r#"duplicate field "spec.a[0].b""#]);
}

#[test]
fn schemas_inside_definitions_lose_unknown_fields_without_a_word() {
    let view = builtin::kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition").unwrap();
    let text = br#"{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"foo":1,"properties":{"a":
        {"items":{"type":"string","foo":1},"default":{"foo":1}}}}}}]}}"#;
    let decoded = typed(view, text).unwrap();
    assert_eq!(decoded.strict, [r#"unknown field "spec.versions[0].schema.openAPIV3Schema.foo""#]);
    let properties = &decoded.value["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    assert_eq!(*properties, json!({"a": {"items": {"type": "string"}, "default": {"foo": 1}}}));
}

#[test]
fn a_strict_refusal_names_the_kind_and_every_field() {
    let strict = vec![r#"unknown field "spec.a""#.to_owned(), r#"unknown field "spec.b""#.to_owned()];
    assert_eq!(
        unusable("Pod", "v1", &strict_error(&strict)),
        "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: unknown field \"spec.a\", \
         unknown field \"spec.b\""
    );
}

#[test]
fn a_body_that_does_not_say_what_it_is_is_shown_in_part() {
    for (text, want) in [
        (
            "{\"kind\":1}",
            "the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse \
             error: json: cannot unmarshal number into Go struct field .kind of type string ({\"kind\":1})",
        ),
        (
            "[]",
            "the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse \
             error: json: cannot unmarshal array into Go value of type struct { APIVersion string \
             \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" } (5b5d)",
        ),
        (
            "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"spec\":",
            "the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse \
             error: unexpected end of JSON input ({\"kind\":\"Pod\",\"apiVersion\":\"v1 ...)",
        ),
    ] {
        let error = type_meta(text.as_bytes()).unwrap_err();
        assert_eq!(unrecognized("Pod", text.as_bytes(), &error.0), want);
    }
    assert_eq!(type_meta(br#"{"kind":"Pod"}"#), Ok((String::new(), "Pod".to_owned())));
}
