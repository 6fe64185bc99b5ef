//! Reading values: [`FromJson`] for the types of the standard library; derives implement it for ours.

use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    vec::Vec,
};
use core::mem;

use serde::de::{Deserialize as _, Deserializer, Error as _};
use serde_json::{Map, Value};

use crate::JsonError;

/// The fields of an object that were not read yet.
pub type FieldMap = Map<String, Value>;

/// A value that can be read from JSON.
pub trait FromJson: Sized {
    fn from_value(value: Value) -> Result<Self, JsonError>;

    /// Reads the value from fields of the object around it, and takes them: for fields that are flattened, and tagged variants.
    fn from_fields(fields: &mut FieldMap) -> Result<Self, JsonError> {
        Self::from_value(Value::Object(mem::take(fields)))
    }

    /// The value of a field that is not there.
    fn from_missing(name: &str) -> Result<Self, JsonError> {
        Err(JsonError::missing_field(name))
    }
}

/// Reads a value with serde.
pub fn read_json<'de, T: FromJson, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::from_value(Value::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// Takes the fields of an object.
pub fn expect_object(value: Value) -> Result<FieldMap, JsonError> {
    match value {
        Value::Object(fields) => Ok(fields),
        other => Err(JsonError::wrong_type(&other, "an object")),
    }
}

/// Takes the elements of a list that has a fixed length.
pub fn take_list(value: Value, length: usize) -> Result<alloc::vec::IntoIter<Value>, JsonError> {
    match value {
        Value::Array(items) if items.len() == length => Ok(items.into_iter()),
        other => Err(JsonError::wrong_type(&other, &format!("a list of {length}"))),
    }
}

/// Takes a field that has to be there.
pub fn take_field<T: FromJson>(fields: &mut FieldMap, name: &'static str) -> Result<T, JsonError> {
    match fields.remove(name) {
        Some(value) => T::from_value(value).map_err(|error| error.in_field(name)),
        None => T::from_missing(name),
    }
}

/// Takes a field that may be missing.
pub fn take_present<T: FromJson>(fields: &mut FieldMap, name: &'static str) -> Result<Option<T>, JsonError> {
    let value = fields.remove(name).map(T::from_value).transpose();
    value.map_err(|error| error.in_field(name))
}

/// Takes the field that says which variant of an enum an object is.
pub fn take_tag(fields: &mut FieldMap, name: &str) -> Result<String, JsonError> {
    match fields.remove(name) {
        Some(Value::String(tag)) => Ok(tag),
        Some(other) => Err(JsonError::wrong_type(&other, "the name of a variant").in_field(name)),
        None => Err(JsonError::missing_field(name)),
    }
}

/// Refuses what is left of the fields of a type that knows all of its fields.
pub fn refuse_unknown(fields: &FieldMap) -> Result<(), JsonError> {
    match fields.keys().next() {
        Some(name) => Err(JsonError::new(format!("unknown field `{name}`"))),
        None => Ok(()),
    }
}

/// Takes the name and the content of a variant that is written as an object with one field.
pub fn take_variant(value: Value) -> Result<(String, Value), JsonError> {
    let mut entries = expect_object(value)?.into_iter();
    match (entries.next(), entries.next()) {
        (Some(entry), None) => Ok(entry),
        _ => Err(JsonError::new("expected an object with one field: the name of a variant")),
    }
}

/// Implements `FromJson` for integers.
macro_rules! read_integers {
    ($($integer:ty),*) => {
        $(
            impl FromJson for $integer {
                fn from_value(value: Value) -> Result<Self, JsonError> {
                    let expected = stringify!($integer);
                    let Value::Number(number) = &value else { return Err(JsonError::wrong_type(&value, expected)) };
                    let fits = match number.as_u64() {
                        Some(natural) => <$integer>::try_from(natural).ok(),
                        None => number.as_i64().and_then(|integer| <$integer>::try_from(integer).ok()),
                    };
                    fits.ok_or_else(|| JsonError::wrong_type(&value, expected))
                }
            }
        )*
    };
}

read_integers!(u8, u16, u32, u64, usize, i32, i64);

impl FromJson for f64 {
    fn from_value(value: Value) -> Result<Self, JsonError> {
        value.as_f64().ok_or_else(|| JsonError::wrong_type(&value, "a number"))
    }
}

impl FromJson for f32 {
    fn from_value(value: Value) -> Result<Self, JsonError> {
        f64::from_value(value).map(|number| number as f32)
    }
}

impl FromJson for bool {
    fn from_value(value: Value) -> Result<Self, JsonError> {
        value.as_bool().ok_or_else(|| JsonError::wrong_type(&value, "a boolean"))
    }
}

impl FromJson for String {
    fn from_value(value: Value) -> Result<Self, JsonError> {
        match value {
            Value::String(text) => Ok(text),
            other => Err(JsonError::wrong_type(&other, "a string")),
        }
    }
}

impl FromJson for Value {
    fn from_value(value: Value) -> Result<Self, JsonError> {
        Ok(value)
    }
}

impl FromJson for () {
    fn from_value(value: Value) -> Result<Self, JsonError> {
        if value.is_null() { Ok(()) } else { Err(JsonError::wrong_type(&value, "null")) }
    }
}

impl<T: FromJson> FromJson for Box<T> {
    fn from_value(value: Value) -> Result<Self, JsonError> {
        T::from_value(value).map(Box::new)
    }

    fn from_fields(fields: &mut FieldMap) -> Result<Self, JsonError> {
        T::from_fields(fields).map(Box::new)
    }

    fn from_missing(name: &str) -> Result<Self, JsonError> {
        T::from_missing(name).map(Box::new)
    }
}

impl<T: FromJson> FromJson for Option<T> {
    fn from_value(value: Value) -> Result<Self, JsonError> {
        if value.is_null() { Ok(None) } else { T::from_value(value).map(Some) }
    }

    /// As for serde, fields that do not make the value are the same as none.
    fn from_fields(fields: &mut FieldMap) -> Result<Self, JsonError> {
        let mut remaining_fields = fields.clone();
        let value = T::from_fields(&mut remaining_fields).ok();
        if value.is_some() {
            *fields = remaining_fields;
        }
        Ok(value)
    }

    fn from_missing(_: &str) -> Result<Self, JsonError> {
        Ok(None)
    }
}

impl<T: FromJson> FromJson for Vec<T> {
    fn from_value(value: Value) -> Result<Self, JsonError> {
        let Value::Array(items) = value else { return Err(JsonError::wrong_type(&value, "a list")) };
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            values.push(T::from_value(item)?);
        }
        Ok(values)
    }
}

impl<T: FromJson + Ord> FromJson for BTreeSet<T> {
    fn from_value(value: Value) -> Result<Self, JsonError> {
        let mut values = BTreeSet::new();
        for item in Vec::<T>::from_value(value)? {
            values.insert(item);
        }
        Ok(values)
    }
}

impl<K: FromJson + Ord, V: FromJson> FromJson for BTreeMap<K, V> {
    fn from_value(value: Value) -> Result<Self, JsonError> {
        let mut entries = BTreeMap::new();
        for (key, value) in expect_object(value)? {
            let value = V::from_value(value).map_err(|error| error.in_field(&key))?;
            entries.insert(read_key(key)?, value);
        }
        Ok(entries)
    }
}

/// Reads the key of an object: as a text, or as the number or flag that is written in it.
fn read_key<K: FromJson>(key: String) -> Result<K, JsonError> {
    let as_number = serde_json::from_str::<Value>(&key).ok().filter(|value| value.is_number() || value.is_boolean());
    match (K::from_value(Value::String(key)), as_number) {
        (Err(_), Some(value)) => K::from_value(value),
        (result, _) => result,
    }
}

impl<A: FromJson, B: FromJson> FromJson for (A, B) {
    fn from_value(value: Value) -> Result<Self, JsonError> {
        let mut items = take_list(value, 2)?;
        let mut next = || items.next().unwrap_or_default();
        Ok((A::from_value(next())?, B::from_value(next())?))
    }
}

impl<A: FromJson, B: FromJson, C: FromJson> FromJson for (A, B, C) {
    fn from_value(value: Value) -> Result<Self, JsonError> {
        let mut items = take_list(value, 3)?;
        let mut next = || items.next().unwrap_or_default();
        Ok((A::from_value(next())?, B::from_value(next())?, C::from_value(next())?))
    }
}
