"""A compiled loop over pixels: the piece of every pixel → averaged colours."""

from ...compiling import compiled


@compiled
def average_colours(owners, table, block, picture):
    """Write the mean colour of every block of pixels into `picture` (n, n, 4); the last row of `table` is for −1.

    Colours of the table are multiplied by their opacity; those of the picture are not.
    """
    none = table.shape[0] - 1
    count = float(block * block)
    for row in range(picture.shape[0]):
        for column in range(picture.shape[1]):
            for channel in range(4):
                picture[row, column, channel] = 0.0
            for y in range(block):
                for x in range(block):
                    owner = owners[row * block + y, column * block + x]
                    for channel in range(4):
                        picture[row, column, channel] += table[owner if owner >= 0 else none, channel]
            for channel in range(4):
                picture[row, column, channel] /= count
            opacity = max(picture[row, column, 3], 1e-9)
            for channel in range(3):
                picture[row, column, channel] = min(max(picture[row, column, channel] / opacity, 0.0), 1.0)
            picture[row, column, 3] = min(max(picture[row, column, 3], 0.0), 1.0)
