//! The columns of some rows, in one form whatever form they have in the file.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, StringArray};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::DataType;

use super::schema::{Column, Content};
use crate::error::Error;

/// Returns `true` if a column of this type can be read as such a column.
pub(super) fn readable(column: Column, found: &DataType) -> bool {
    // A column without any value has no type with some writers.
    if *found == DataType::Null {
        return !column.always();
    }
    match column.content() {
        Content::Time | Content::Number | Content::Large => found.is_integer() || is_float(found),
        Content::Word => *found == DataType::Utf8,
    }
}

fn is_float(found: &DataType) -> bool {
    matches!(found, DataType::Float32 | DataType::Float64)
}

/// Returns the expected content of a column of numbers, in words for error messages.
pub(super) fn expected(column: Column) -> &'static str {
    match column.content() {
        Content::Time => "int64",
        Content::Number => "uint32",
        Content::Large => "uint64",
        Content::Word => "string",
    }
}

/// A column of numbers.
pub(super) struct Numbers<T: arrow_buffer::ArrowNativeType> {
    values: ScalarBuffer<T>,
    nulls: Option<NullBuffer>,
}

impl<T: arrow_buffer::ArrowNativeType> Numbers<T> {
    /// A column that has nothing in this number of rows.
    pub(super) fn absent(rows: usize) -> Numbers<T> {
        let values = vec![T::default(); rows].into();
        Numbers { values, nulls: Some(NullBuffer::new_null(rows)) }
    }

    /// Returns the number in this row, unless it is null.
    #[inline]
    pub(super) fn get(&self, row: usize) -> Option<T> {
        match &self.nulls {
            Some(nulls) if nulls.is_null(row) => None,
            _ => Some(self.values[row]),
        }
    }
}

/// The numbers of a column that begins with the row `first` of the file. `Own` is the type that
/// needs no conversion.
pub(super) fn numbers<Own: ArrowPrimitiveType>(
    array: &dyn Array,
    column: Column,
    first: u64,
) -> Result<Numbers<Own::Native>, Error>
where
    Own::Native: TryFrom<i128>,
{
    if let Some(own) = array.as_primitive_opt::<Own>() {
        return Ok(Numbers { values: own.values().clone(), nulls: own.nulls().cloned() });
    }
    let convert = Conversion { array, column, first };
    match array.data_type() {
        DataType::Int8 => convert.integers::<Int8Type, _>(),
        DataType::Int16 => convert.integers::<Int16Type, _>(),
        DataType::Int32 => convert.integers::<Int32Type, _>(),
        DataType::Int64 => convert.integers::<Int64Type, _>(),
        DataType::UInt8 => convert.integers::<UInt8Type, _>(),
        DataType::UInt16 => convert.integers::<UInt16Type, _>(),
        DataType::UInt32 => convert.integers::<UInt32Type, _>(),
        DataType::UInt64 => convert.integers::<UInt64Type, _>(),
        DataType::Float32 => convert.primitive::<Float32Type, _>(|value| whole(value.into())),
        DataType::Float64 => convert.primitive::<Float64Type, _>(whole),
        _ => convert.primitive_nulls(),
    }
}

/// A floating-point number that is whole.
fn whole(value: f64) -> Option<i128> {
    let number = value as i128;
    (number as f64 == value).then_some(number)
}

struct Conversion<'a> {
    array: &'a dyn Array,
    column: Column,
    first: u64,
}

impl Conversion<'_> {
    fn integers<From, To>(&self) -> Result<Numbers<To>, Error>
    where
        From: ArrowPrimitiveType,
        From::Native: Into<i128>,
        To: arrow_buffer::ArrowNativeType + TryFrom<i128>,
    {
        self.primitive::<From, To>(|value| Some(value.into()))
    }

    fn primitive<From, To>(
        &self,
        read: impl Fn(From::Native) -> Option<i128>,
    ) -> Result<Numbers<To>, Error>
    where
        From: ArrowPrimitiveType,
        To: arrow_buffer::ArrowNativeType + TryFrom<i128>,
    {
        let array = self.array.as_primitive::<From>();
        let value = |row: usize| {
            if array.is_null(row) {
                return Ok(To::default());
            }
            let number = read(array.value(row)).and_then(|number| To::try_from(number).ok());
            number.ok_or_else(|| self.out_of_range(row))
        };
        let values: Result<Vec<To>, Error> = (0..array.len()).map(value).collect();
        Ok(Numbers { values: values?.into(), nulls: array.nulls().cloned() })
    }

    fn out_of_range(&self, row: usize) -> Error {
        let (name, expected) = (self.column.name(), expected(self.column));
        Error::at_row(self.first + row as u64, format!("`{name}` does not fit into {expected}"))
    }

    /// A column that has no values, and no type.
    fn primitive_nulls<To: arrow_buffer::ArrowNativeType>(&self) -> Result<Numbers<To>, Error> {
        Ok(Numbers::absent(self.array.len()))
    }
}

/// A column of words.
pub(super) struct Words {
    keys: Numbers<i32>,
    words: StringArray,
}

impl Words {
    /// A column that has nothing in this number of rows.
    pub(super) fn absent(rows: usize) -> Words {
        Words { keys: Numbers::absent(rows), words: StringArray::new_null(0) }
    }

    pub(super) fn new(array: &dyn Array) -> Words {
        let Some(array) = array.as_dictionary_opt::<Int32Type>() else {
            return Words::absent(array.len());
        };
        let keys = array.keys();
        let keys = Numbers { values: keys.values().clone(), nulls: keys.nulls().cloned() };
        Words { keys, words: array.values().as_string::<i32>().clone() }
    }

    /// Returns the number of the word in this row, unless it is null.
    #[inline]
    pub(super) fn key(&self, row: usize) -> Option<usize> {
        self.keys.get(row).map(|key| key as usize)
    }

    /// Returns the word in this row, unless it is null.
    pub(super) fn get(&self, row: usize) -> Option<&str> {
        let key = self.key(row)?;
        (key < self.words.len()).then(|| self.words.value(key))
    }

    /// Returns the meanings of all words, in the order of their numbers.
    pub(super) fn meanings<T>(&self, read: impl Fn(&str) -> Option<T>) -> Vec<Option<T>> {
        self.words.iter().map(|word| word.and_then(&read)).collect()
    }
}
