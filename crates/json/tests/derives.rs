//! The derives write and read what those of serde write and read.
#![cfg(test)]

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

/// Defines the same types with the derives of serde and with ours.
macro_rules! same_types {
    ($($types:tt)*) => {
        mod by_serde {
            use super::*;
            use serde::{Deserialize, Serialize};

            $($types)*
        }

        mod by_json {
            use super::*;
            use tribunal_json::{Deserialize, Serialize};

            $($types)*
        }
    };
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

fn seven() -> u32 {
    7
}

same_types! {
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct Plain {
        pub name: String,
        #[serde(default, skip_serializing_if = "is_zero")]
        pub count: u32,
        #[serde(default = "seven")]
        pub limit: u32,
        pub part: Option<Box<Plain>>,
        #[serde(rename = "as")]
        pub pairs: Vec<(String, i64)>,
        #[serde(skip)]
        pub hidden: bool,
        #[serde(flatten)]
        pub form: Tagged,
        #[serde(default)]
        pub by_name: BTreeMap<Name, Unit>,
    }

    #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(transparent)]
    pub struct Name(pub String);

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Unit {
        FirstOne,
        Second(u8),
        Third { some_text: String, real: f64 },
        Fourth(u8, bool),
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "kind", rename_all = "snake_case")]
    pub enum Tagged {
        Nothing,
        WithText { text: String, #[serde(default, skip_serializing_if = "Option::is_none")] more: Option<u8> },
        Inner(Inner),
    }

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    pub struct Inner {
        pub first_part: u8,
        pub second_part: Vec<Value>,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "workflow", content = "order", rename_all = "snake_case")]
    pub enum Beside {
        Idle,
        Busy(Inner),
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(untagged)]
    pub enum Either {
        Line(String),
        Words(Vec<String>),
        Object { word: String },
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Strict {
        pub only: u8,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "about", rename_all = "snake_case")]
    pub enum Topic {
        Limit,
        #[serde(untagged)]
        Other(Tagged),
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct Whole {
        pub plain: Plain,
        pub beside: Beside,
        pub either: Vec<Either>,
        pub units: Vec<Unit>,
        pub strict: Option<Strict>,
    }
}

/// What both derives make of a value: how it is written again, or that it is refused.
fn read_both(value: &Value) -> (Option<String>, Option<String>) {
    let by_serde = serde_json::from_value::<by_serde::Whole>(value.clone()).ok();
    let by_json = serde_json::from_value::<by_json::Whole>(value.clone()).ok();
    (
        by_serde.map(|read| serde_json::to_string(&read).unwrap()),
        by_json.map(|read| serde_json::to_string(&read).unwrap()),
    )
}

fn sample() -> Value {
    json!({
        "plain": {
            "name": "a\"b", "count": 3, "limit": 4, "as": [["x", -1], ["y", 2]], "kind": "with_text", "text": "t",
            "part": {"name": "inner", "as": [], "kind": "inner", "firstPart": 2, "secondPart": [null, {"a": 1}]},
            "by_name": {"n": "first-one", "m": {"second": 3}},
        },
        "beside": {"workflow": "busy", "order": {"firstPart": 1}},
        "either": ["line", ["two", "words"], {"word": "x"}],
        "units": ["first-one", {"second": 255}, {"third": {"some_text": "", "real": 1.5}}, {"fourth": [1, true]}],
        "strict": {"only": 1},
    })
}

#[test]
fn a_value_with_every_form_is_read_and_written_as_by_serde() {
    let (by_serde, by_json) = read_both(&sample());
    assert!(by_serde.is_some());
    assert_eq!(by_json, by_serde);
}

#[test]
fn what_has_no_tag_of_the_enum_is_read_by_the_variants_without_one() {
    for (value, written) in [
        (json!({"about": "limit"}), Some(json!({"about": "limit"}))),
        (json!({"kind": "nothing"}), Some(json!({"kind": "nothing"}))),
        (json!({"text": "nothing"}), None),
        (json!({"about": "x", "kind": "with_text", "text": "t"}), Some(json!({"kind": "with_text", "text": "t"}))),
    ] {
        let by_serde = serde_json::from_value::<by_serde::Topic>(value.clone());
        assert_eq!(by_serde.ok().map(|topic| serde_json::to_value(topic).unwrap()), written);
        let read = serde_json::from_value::<by_json::Topic>(value);
        assert_eq!(read.ok().map(|topic| serde_json::to_value(topic).unwrap()), written);
    }
}

#[test]
fn errors_name_the_place() {
    let mut value = sample();
    value["plain"]["part"]["firstPart"] = json!("three");
    let error = serde_json::from_value::<by_json::Whole>(value).unwrap_err();
    assert_eq!(error.to_string(), "plain.part.firstPart: invalid type: string \"three\", expected u8");
    let mut value = sample();
    value["strict"]["more"] = json!(1);
    let error = serde_json::from_value::<by_json::Whole>(value).unwrap_err();
    assert_eq!(error.to_string(), "strict: unknown field `more`");
}

/// Lists the places in a value, as pointers.
fn list_places(value: &Value, place: &str, places: &mut Vec<String>) {
    places.push(place.to_string());
    match value {
        Value::Array(items) => {
            for (position, item) in items.iter().enumerate() {
                list_places(item, &format!("{place}/{position}"), places);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                list_places(field, &format!("{place}/{name}"), places);
            }
        }
        _ => {}
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let words = ["first-one", "second", "with_text", "nothing", "inner", "busy", "idle", "line", ""];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0_u64..300).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(words.to_vec()).prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        // Lists are left out: serde reads the fields of a struct from one, by their order.
        let names = vec!["kind", "text", "name", "order", "word", "second"];
        let fields = prop::collection::vec((prop::sample::select(names), inner), 0..3);
        fields.prop_map(|fields| fields.into_iter().map(|(name, field)| (name.to_string(), field)).collect())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// One place of a good value is replaced or removed: what serde reads is read, and what it refuses is refused.
    #[test]
    fn changed_values_are_read_as_by_serde(
        place in any::<prop::sample::Index>(),
        replacement in prop::option::of(any_value()),
    ) {
        let mut value = sample();
        let mut places = Vec::new();
        list_places(&value, "", &mut places);
        let place = place.get(&places).clone();
        match (replacement, place.rsplit_once('/')) {
            (Some(replacement), _) => *value.pointer_mut(&place).unwrap() = replacement,
            (None, Some((parent, name))) => match value.pointer_mut(parent).unwrap() {
                Value::Array(items) => drop(items.remove(name.parse().unwrap())),
                Value::Object(fields) => drop(fields.remove(name)),
                _ => unreachable!(),
            },
            (None, None) => value = Value::Null,
        }
        let (by_serde, by_json) = read_both(&value);
        prop_assert_eq!(by_json, by_serde, "{}", value);
    }
}
