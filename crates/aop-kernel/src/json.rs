//! JSON text as `serde_json` writes it, byte for byte, for what is written all day: records, events, envelopes and the
//! normal forms of requests. `serde_json` looks at each letter of each name; here names are taken as they are, and
//! only texts are looked at.

use serde::ser::{self, Error as _, Serialize, Serializer};
use serde_json::Error;
use std::fmt::Write as _;

/// Writes a value behind what is there already.
pub fn write(out: &mut String, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
    value.serialize(Json(out))
}

struct Json<'a>(&'a mut String);

/// A list or an object being written.
struct Compound<'a> {
    out: &'a mut String,
    is_first: bool,
    end: &'static str,
}

impl<'a> Json<'a> {
    fn compound(self, begin: char, end: &'static str) -> Compound<'a> {
        self.0.push(begin);
        Compound { out: self.0, is_first: true, end }
    }

    /// The content of a variant stands in an object under the variant's name.
    fn variant(self, name: &str) -> Self {
        self.0.push('{');
        quoted(self.0, name);
        self.0.push(':');
        self
    }

    /// What is rare is left to `serde_json`.
    fn rare(self, value: impl Serialize) -> Result<(), Error> {
        self.0.push_str(&serde_json::to_string(&value)?);
        Ok(())
    }
}

/// A name as the program spells it, or a text that has nothing special in it.
#[inline]
fn quoted(out: &mut String, text: &str) {
    debug_assert!(!needs_escapes(text), "{text:?} cannot stand as it is");
    out.push('"');
    out.push_str(text);
    out.push('"');
}

fn needs_escapes(text: &str) -> bool {
    let bytes = text.as_bytes();
    match bytes.last_chunk::<8>() {
        // The last eight have perhaps been among the ones before.
        Some(last) => bytes.as_chunks::<8>().0.iter().any(has_special) || has_special(last),
        None => bytes.iter().any(|byte| matches!(byte, ..b' ' | b'"' | b'\\')),
    }
}

/// Whether any of eight bytes is a control character, a quote or a backslash, found in all of them at once: the top
/// bit of a byte is set by a subtraction that the byte is too small for.
fn has_special(bytes: &[u8; 8]) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let bytes = u64::from_le_bytes(*bytes);
    let less = |bytes: u64, than: u8| bytes.wrapping_sub(ONES * u64::from(than)) & !bytes;
    let equal = |to: u8| less(bytes ^ (ONES * u64::from(to)), 1);
    (less(bytes, b' ') | equal(b'"') | equal(b'\\')) & (ONES << 7) != 0
}

impl<'a> Serializer for Json<'a> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Compound<'a>;
    type SerializeTuple = Compound<'a>;
    type SerializeTupleStruct = Compound<'a>;
    type SerializeTupleVariant = Compound<'a>;
    type SerializeMap = Compound<'a>;
    type SerializeStruct = Compound<'a>;
    type SerializeStructVariant = Compound<'a>;

    fn serialize_str(self, text: &str) -> Result<(), Error> {
        if needs_escapes(text) {
            return self.rare(text);
        }
        quoted(self.0, text);
        Ok(())
    }

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        self.0.push_str(if value { "true" } else { "false" });
        Ok(())
    }

    fn serialize_i8(self, number: i8) -> Result<(), Error> {
        self.serialize_i64(number.into())
    }

    fn serialize_i16(self, number: i16) -> Result<(), Error> {
        self.serialize_i64(number.into())
    }

    fn serialize_i32(self, number: i32) -> Result<(), Error> {
        self.serialize_i64(number.into())
    }

    fn serialize_i64(self, number: i64) -> Result<(), Error> {
        write!(self.0, "{number}").map_err(Error::custom)
    }

    fn serialize_u8(self, number: u8) -> Result<(), Error> {
        self.serialize_u64(number.into())
    }

    fn serialize_u16(self, number: u16) -> Result<(), Error> {
        self.serialize_u64(number.into())
    }

    fn serialize_u32(self, number: u32) -> Result<(), Error> {
        self.serialize_u64(number.into())
    }

    fn serialize_u64(self, number: u64) -> Result<(), Error> {
        if let Ok(digit @ ..10) = u8::try_from(number) {
            self.0.push(char::from(b'0' + digit));
            return Ok(());
        }
        write!(self.0, "{number}").map_err(Error::custom)
    }

    fn serialize_f32(self, number: f32) -> Result<(), Error> {
        self.rare(number)
    }

    fn serialize_f64(self, number: f64) -> Result<(), Error> {
        self.rare(number)
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.rare(value)
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<(), Error> {
        self.rare(bytes)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.0.push_str("null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, name: &'static str) -> Result<(), Error> {
        quoted(self.0, name);
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let Json(out) = self.variant(name);
        value.serialize(Json(out))?;
        out.push('}');
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Compound<'a>, Error> {
        Ok(self.compound('[', "]"))
    }

    fn serialize_tuple(self, _: usize) -> Result<Compound<'a>, Error> {
        Ok(self.compound('[', "]"))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Compound<'a>, Error> {
        Ok(self.compound('[', "]"))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Compound<'a>, Error> {
        Ok(self.variant(name).compound('[', "]}"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Compound<'a>, Error> {
        Ok(self.compound('{', "}"))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Compound<'a>, Error> {
        // What `serde_json` tells itself with such names (text to be taken as it is) it understands alone.
        if name.starts_with("$serde_json::") {
            return Err(Error::custom(format!("{name} cannot be written here")));
        }
        Ok(self.compound('{', "}"))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Compound<'a>, Error> {
        Ok(self.variant(name).compound('{', "}}"))
    }
}

impl Compound<'_> {
    #[inline]
    fn separate(&mut self) {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(',');
        }
    }

    fn item(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.separate();
        write(self.out, value)
    }

    #[inline]
    fn field(&mut self, name: &'static str, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.separate();
        quoted(self.out, name);
        self.out.push(':');
        write(self.out, value)
    }

    fn finish(self) {
        self.out.push_str(self.end);
    }
}

impl ser::SerializeMap for Compound<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.separate();
        let start = self.out.len();
        write(self.out, key)?;
        if self.out.as_bytes().get(start) != Some(&b'"') {
            return Err(Error::custom("key must be a string"));
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.out.push(':');
        write(self.out, value)
    }

    fn end(self) -> Result<(), Error> {
        self.finish();
        Ok(())
    }
}

macro_rules! items {
    ($($kind:ident, $put:ident;)*) => {$(
        impl ser::$kind for Compound<'_> {
            type Ok = ();
            type Error = Error;

            fn $put<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.item(value)
            }

            fn end(self) -> Result<(), Error> {
                self.finish();
                Ok(())
            }
        }
    )*};
}

macro_rules! fields {
    ($($kind:ident;)*) => {$(
        impl ser::$kind for Compound<'_> {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
                self.field(name, value)
            }

            fn end(self) -> Result<(), Error> {
                self.finish();
                Ok(())
            }
        }
    )*};
}

items! {
    SerializeSeq, serialize_element;
    SerializeTuple, serialize_element;
    SerializeTupleStruct, serialize_field;
    SerializeTupleVariant, serialize_field;
}

fields! {
    SerializeStruct;
    SerializeStructVariant;
}
