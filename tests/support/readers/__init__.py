"""Read results of the engines, and compare them with definitions."""
