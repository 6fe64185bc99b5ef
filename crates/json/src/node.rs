//! A value on its way to JSON: a tree whose objects keep the order of their fields, and whose texts are borrowed.

use alloc::{
    borrow::Cow,
    string::{String, ToString as _},
    vec::Vec,
};
use core::fmt;

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::Value;

use crate::ToJson;

/// One value of JSON.
#[derive(Clone, Debug, PartialEq)]
pub enum Node<'a> {
    Null,
    Flag(bool),
    Natural(u64),
    Integer(i64),
    Real(f64),
    Text(Cow<'a, str>),
    List(Vec<Node<'a>>),
    Object(Fields<'a>),
    /// JSON that was read before.
    Value(Cow<'a, Value>),
}

/// The fields of an object, in the order in which they are written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fields<'a> {
    entries: Vec<(Cow<'a, str>, Node<'a>)>,
}

impl<'a> Fields<'a> {
    /// Adds a field of a type. The call is the same for all types, so that no code is made for each of them.
    pub fn add_field(&mut self, name: &'static str, value: &'a dyn ToJson) {
        self.entries.push((Cow::Borrowed(name), value.to_node()));
    }

    pub fn add_text(&mut self, name: &'static str, text: &'static str) {
        self.entries.push((Cow::Borrowed(name), Node::Text(Cow::Borrowed(text))));
    }

    pub fn add_node(&mut self, name: impl Into<Cow<'a, str>>, node: Node<'a>) {
        self.entries.push((name.into(), node));
    }

    /// Adds the fields of an object that is not an object of its own in JSON. What is not an object has no fields.
    pub fn add_fields_of(&mut self, node: Node<'a>) {
        match node {
            Node::Object(mut fields) => self.entries.append(&mut fields.entries),
            Node::Value(value) => {
                if let Value::Object(map) = value.into_owned() {
                    let entries =
                        map.into_iter().map(|(name, value)| (Cow::Owned(name), Node::Value(Cow::Owned(value))));
                    self.entries.extend(entries);
                }
            }
            _ => {}
        }
    }
}

impl Node<'_> {
    pub fn from_display(value: &dyn fmt::Display) -> Node<'static> {
        Node::Text(Cow::Owned(value.to_string()))
    }

    /// Copies the texts that are borrowed.
    pub fn into_owned(self) -> Node<'static> {
        match self {
            Node::Null => Node::Null,
            Node::Flag(flag) => Node::Flag(flag),
            Node::Natural(number) => Node::Natural(number),
            Node::Integer(number) => Node::Integer(number),
            Node::Real(number) => Node::Real(number),
            Node::Text(text) => Node::Text(Cow::Owned(text.into_owned())),
            Node::List(items) => Node::List(items.into_iter().map(Node::into_owned).collect()),
            Node::Object(fields) => Node::Object(Fields {
                entries: fields
                    .entries
                    .into_iter()
                    .map(|(name, node)| (Cow::Owned(name.into_owned()), node.into_owned()))
                    .collect(),
            }),
            Node::Value(value) => Node::Value(Cow::Owned(value.into_owned())),
        }
    }

    /// The text of a key in an object; `None` for what cannot be a key.
    pub(crate) fn into_key(self) -> Option<String> {
        match self {
            Node::Text(text) => Some(text.into_owned()),
            Node::Natural(number) => Some(alloc::format!("{number}")),
            Node::Integer(number) => Some(alloc::format!("{number}")),
            Node::Flag(flag) => Some(alloc::format!("{flag}")),
            _ => None,
        }
    }
}

impl Serialize for Node<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Node::Null => serializer.serialize_unit(),
            Node::Flag(flag) => serializer.serialize_bool(*flag),
            Node::Natural(number) => serializer.serialize_u64(*number),
            Node::Integer(number) => serializer.serialize_i64(*number),
            Node::Real(number) => serializer.serialize_f64(*number),
            Node::Text(text) => serializer.serialize_str(text),
            Node::List(items) => serializer.collect_seq(items),
            Node::Object(fields) => {
                let mut map = serializer.serialize_map(Some(fields.entries.len()))?;
                for (name, node) in &fields.entries {
                    map.serialize_entry(name, node)?;
                }
                map.end()
            }
            Node::Value(value) => value.serialize(serializer),
        }
    }
}
