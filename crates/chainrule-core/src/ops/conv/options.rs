//! The options of convolutions, pooling and resampling. Arrays have one entry for each axis of the
//! image, and mean what they mean in PyTorch.

/// The zeros around an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding<const N: usize> {
    /// This number of zeros on both sides of each axis.
    Zeros([usize; N]),
    /// Zeros that make a result of the same size; an odd one out comes last. For a stride of 1.
    Same,
}

impl<const N: usize> Default for Padding<N> {
    fn default() -> Self {
        Padding::Zeros([0; N])
    }
}

impl<const N: usize> From<[usize; N]> for Padding<N> {
    fn from(zeros: [usize; N]) -> Self {
        Padding::Zeros(zeros)
    }
}

/// Options of [`Tensor::conv1d_with`](crate::Tensor::conv1d_with) (`N` is 1) and
/// [`Tensor::conv2d_with`](crate::Tensor::conv2d_with) (2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conv<const N: usize> {
    /// Steps of the kernel from one element of the result to the next; 1 by default.
    pub stride: [usize; N],
    /// Zeros around the input; none by default.
    pub padding: Padding<N>,
    /// Distance of the elements that the kernel meets; 1 by default.
    pub dilation: [usize; N],
    /// Into how many groups the channels are split, which do not see each other; 1 by default.
    pub groups: usize,
}

impl<const N: usize> Default for Conv<N> {
    fn default() -> Self {
        Conv { stride: [1; N], padding: Padding::default(), dilation: [1; N], groups: 1 }
    }
}

/// Options of [`Tensor::conv_transpose1d_with`](crate::Tensor::conv_transpose1d_with) (`N` is 1)
/// and [`Tensor::conv_transpose2d_with`](crate::Tensor::conv_transpose2d_with) (2): those of the
/// convolution that is reversed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvTranspose<const N: usize> {
    /// Steps of the kernel in the result from one element of the input to the next; 1 by default.
    pub stride: [usize; N],
    /// Elements on both sides that are left out of the result; none by default.
    pub padding: [usize; N],
    /// Elements added to the end of the result, since a convolution with a stride has the same size
    /// for several inputs; 0 by default. Less than the stride or the dilation.
    pub output_padding: [usize; N],
    /// Distance of the elements that the kernel meets; 1 by default.
    pub dilation: [usize; N],
    /// Into how many groups the channels are split, which do not see each other; 1 by default.
    pub groups: usize,
}

impl<const N: usize> Default for ConvTranspose<N> {
    fn default() -> Self {
        ConvTranspose {
            stride: [1; N],
            padding: [0; N],
            output_padding: [0; N],
            dilation: [1; N],
            groups: 1,
        }
    }
}

/// Options of [`Tensor::max_pool1d_with`](crate::Tensor::max_pool1d_with) (`N` is 1) and
/// [`Tensor::max_pool2d_with`](crate::Tensor::max_pool2d_with) (2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxPool<const N: usize> {
    /// Steps of the window; its own size by default.
    pub stride: Option<[usize; N]>,
    /// Reach of the windows beyond both sides, where there is nothing; at most half of the window.
    /// None by default.
    pub padding: [usize; N],
    /// Distance of the elements of a window; 1 by default.
    pub dilation: [usize; N],
    /// Whether a last window that reaches out further counts too; no by default.
    pub ceil_mode: bool,
}

impl<const N: usize> Default for MaxPool<N> {
    fn default() -> Self {
        MaxPool { stride: None, padding: [0; N], dilation: [1; N], ceil_mode: false }
    }
}

/// Options of [`Tensor::avg_pool1d_with`](crate::Tensor::avg_pool1d_with) (`N` is 1) and
/// [`Tensor::avg_pool2d_with`](crate::Tensor::avg_pool2d_with) (2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AvgPool<const N: usize> {
    /// Steps of the window; its own size by default.
    pub stride: Option<[usize; N]>,
    /// Zeros around the input; at most half of the window. None by default.
    pub padding: [usize; N],
    /// Whether a last window that reaches out further counts too; no by default.
    pub ceil_mode: bool,
    /// Whether the zeros of the padding count as elements of the mean; yes by default.
    pub count_include_pad: bool,
}

impl<const N: usize> Default for AvgPool<N> {
    fn default() -> Self {
        AvgPool { stride: None, padding: [0; N], ceil_mode: false, count_include_pad: true }
    }
}

/// Method by which [`Tensor::interpolate`](crate::Tensor::interpolate) fills in between the
/// elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interpolation {
    /// The nearest element before.
    #[default]
    Nearest,
    /// Straight lines from element to element, along each axis (for images: bilinear).
    Linear {
        /// Whether the first and last elements of input and result lie at the same places (else
        /// their outer edges do).
        align_corners: bool,
    },
}
