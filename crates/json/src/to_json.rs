//! Writing values: [`ToJson`] for the types of the standard library; derives implement it for ours.

use alloc::{
    borrow::{Cow, ToOwned},
    boxed::Box,
    collections::{BTreeMap, BTreeSet},
    string::String,
    vec::Vec,
};

use core::ops::Range;

use serde::ser::{Serialize as _, Serializer};
use serde_json::Value;

use crate::node::{Fields, Node};

/// A value that can be written as JSON.
pub trait ToJson {
    fn to_node(&self) -> Node<'_>;

    /// Adds the fields of this value to those of the object around it: for fields that are flattened, and tagged variants.
    fn add_fields<'a>(&'a self, fields: &mut Fields<'a>) {
        fields.add_fields_of(self.to_node());
    }
}

/// Makes an object of the fields of a value.
pub fn make_object(value: &dyn ToJson) -> Node<'_> {
    let mut fields = Fields::default();
    value.add_fields(&mut fields);
    Node::Object(fields)
}

/// Writes a value with serde.
pub fn write_json<S: Serializer>(value: &dyn ToJson, serializer: S) -> Result<S::Ok, S::Error> {
    value.to_node().serialize(serializer)
}

/// Implements `ToJson` for numbers.
macro_rules! write_numbers {
    ($($number:ty => $variant:ident($wide:ty);)*) => {
        $(
            impl ToJson for $number {
                fn to_node(&self) -> Node<'_> {
                    Node::$variant(<$wide>::from(*self))
                }
            }
        )*
    };
}

write_numbers! {
    u8 => Natural(u64);
    u16 => Natural(u64);
    u32 => Natural(u64);
    u64 => Natural(u64);
    i32 => Integer(i64);
    i64 => Integer(i64);
    f32 => Real(f64);
    f64 => Real(f64);
}

impl ToJson for usize {
    fn to_node(&self) -> Node<'_> {
        Node::Natural(*self as u64)
    }
}

impl ToJson for bool {
    fn to_node(&self) -> Node<'_> {
        Node::Flag(*self)
    }
}

impl ToJson for str {
    fn to_node(&self) -> Node<'_> {
        Node::Text(Cow::Borrowed(self))
    }
}

impl ToJson for String {
    fn to_node(&self) -> Node<'_> {
        self.as_str().to_node()
    }
}

impl ToJson for Value {
    fn to_node(&self) -> Node<'_> {
        Node::Value(Cow::Borrowed(self))
    }
}

impl ToJson for () {
    fn to_node(&self) -> Node<'_> {
        Node::Null
    }
}

impl<T: ToJson + ?Sized> ToJson for &T {
    fn to_node(&self) -> Node<'_> {
        T::to_node(self)
    }

    fn add_fields<'a>(&'a self, fields: &mut Fields<'a>) {
        T::add_fields(self, fields);
    }
}

impl<T: ToJson + ?Sized> ToJson for Box<T> {
    fn to_node(&self) -> Node<'_> {
        T::to_node(self)
    }

    fn add_fields<'a>(&'a self, fields: &mut Fields<'a>) {
        T::add_fields(self, fields);
    }
}

impl<T: ToJson + ToOwned + ?Sized> ToJson for Cow<'_, T> {
    fn to_node(&self) -> Node<'_> {
        T::to_node(self)
    }

    fn add_fields<'a>(&'a self, fields: &mut Fields<'a>) {
        T::add_fields(self, fields);
    }
}

impl<T: ToJson> ToJson for Option<T> {
    fn to_node(&self) -> Node<'_> {
        self.as_ref().map_or(Node::Null, T::to_node)
    }

    fn add_fields<'a>(&'a self, fields: &mut Fields<'a>) {
        if let Some(value) = self {
            value.add_fields(fields);
        }
    }
}

impl<T: ToJson> ToJson for [T] {
    fn to_node(&self) -> Node<'_> {
        Node::List(self.iter().map(T::to_node).collect())
    }
}

impl<T: ToJson> ToJson for Vec<T> {
    fn to_node(&self) -> Node<'_> {
        self.as_slice().to_node()
    }
}

impl<T: ToJson, const N: usize> ToJson for [T; N] {
    fn to_node(&self) -> Node<'_> {
        self.as_slice().to_node()
    }
}

impl<T: ToJson> ToJson for BTreeSet<T> {
    fn to_node(&self) -> Node<'_> {
        Node::List(self.iter().map(T::to_node).collect())
    }
}

/// A key that is no text, number or flag is left out with its value: no type of ours has such keys.
impl<K: ToJson, V: ToJson> ToJson for BTreeMap<K, V> {
    fn to_node(&self) -> Node<'_> {
        let mut fields = Fields::default();
        for (key, value) in self {
            if let Some(key) = key.to_node().into_key() {
                fields.add_node(key, value.to_node());
            }
        }
        Node::Object(fields)
    }
}

impl<A: ToJson, B: ToJson> ToJson for (A, B) {
    fn to_node(&self) -> Node<'_> {
        Node::List([self.0.to_node(), self.1.to_node()].into())
    }
}

impl<A: ToJson, B: ToJson, C: ToJson> ToJson for (A, B, C) {
    fn to_node(&self) -> Node<'_> {
        Node::List([self.0.to_node(), self.1.to_node(), self.2.to_node()].into())
    }
}

impl<T: ToJson> ToJson for Range<T> {
    fn to_node(&self) -> Node<'_> {
        let mut fields = Fields::default();
        fields.add_node("start", self.start.to_node());
        fields.add_node("end", self.end.to_node());
        Node::Object(fields)
    }
}
