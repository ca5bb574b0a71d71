//! The messages of an event file that are written here, by their numbers in TensorBoard's
//! definition.

use prost::Message;

/// A record: a step's numbers, a graph, or the version at the beginning.
#[derive(Clone, PartialEq, Message)]
pub struct EventProto {
    #[prost(double, tag = "1")]
    pub wall_time: f64,
    #[prost(int64, tag = "2")]
    pub step: i64,
    #[prost(string, optional, tag = "3")]
    pub file_version: Option<String>,
    #[prost(bytes = "vec", optional, tag = "4")]
    pub graph_def: Option<Vec<u8>>,
    #[prost(message, optional, tag = "5")]
    pub summary: Option<SummaryProto>,
}

/// Values by tag.
#[derive(Clone, PartialEq, Message)]
pub struct SummaryProto {
    #[prost(message, repeated, tag = "1")]
    pub value: Vec<ValueProto>,
}

/// A number, a histogram or a text.
#[derive(Clone, PartialEq, Message)]
pub struct ValueProto {
    #[prost(string, tag = "1")]
    pub tag: String,
    #[prost(float, optional, tag = "2")]
    pub simple_value: Option<f32>,
    #[prost(message, optional, tag = "5")]
    pub histo: Option<HistogramProto>,
    #[prost(message, optional, tag = "8")]
    pub tensor: Option<TensorProto>,
    #[prost(message, optional, tag = "9")]
    pub metadata: Option<MetadataProto>,
}

/// A histogram: the upper limit and the count of each bucket.
#[derive(Clone, PartialEq, Message)]
pub struct HistogramProto {
    #[prost(double, tag = "1")]
    pub min: f64,
    #[prost(double, tag = "2")]
    pub max: f64,
    #[prost(double, tag = "3")]
    pub num: f64,
    #[prost(double, tag = "4")]
    pub sum: f64,
    #[prost(double, tag = "5")]
    pub sum_squares: f64,
    #[prost(double, repeated, tag = "6")]
    pub bucket_limit: Vec<f64>,
    #[prost(double, repeated, tag = "7")]
    pub bucket: Vec<f64>,
}

/// Texts as a tensor.
#[derive(Clone, PartialEq, Message)]
pub struct TensorProto {
    #[prost(int32, tag = "1")]
    pub dtype: i32,
    #[prost(message, optional, tag = "2")]
    pub tensor_shape: Option<ShapeProto>,
    #[prost(bytes = "vec", repeated, tag = "8")]
    pub string_val: Vec<Vec<u8>>,
}

/// A shape.
#[derive(Clone, PartialEq, Message)]
pub struct ShapeProto {
    #[prost(message, repeated, tag = "2")]
    pub dim: Vec<DimProto>,
}

/// An axis.
#[derive(Clone, PartialEq, Message)]
pub struct DimProto {
    #[prost(int64, tag = "1")]
    pub size: i64,
}

/// The plugin that shows a value.
#[derive(Clone, PartialEq, Message)]
pub struct MetadataProto {
    #[prost(message, optional, tag = "1")]
    pub plugin_data: Option<PluginProto>,
}

/// A plugin.
#[derive(Clone, PartialEq, Message)]
pub struct PluginProto {
    #[prost(string, tag = "1")]
    pub plugin_name: String,
}

/// A graph.
#[derive(Clone, PartialEq, Message)]
pub struct GraphDefProto {
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<NodeProto>,
    #[prost(message, optional, tag = "4")]
    pub versions: Option<VersionProto>,
}

/// An op of a graph.
#[derive(Clone, PartialEq, Message)]
pub struct NodeProto {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub op: String,
    #[prost(string, repeated, tag = "3")]
    pub input: Vec<String>,
}

/// The version of a graph.
#[derive(Clone, PartialEq, Message)]
pub struct VersionProto {
    #[prost(int32, tag = "1")]
    pub producer: i32,
}
