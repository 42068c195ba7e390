"""HARFERegressor and HARFERegressorCV: validation, composition and attributes, no algorithm."""
